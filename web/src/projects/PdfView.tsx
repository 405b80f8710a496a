// A PDF, page by page, drawn here: no plug-in, no frame, and none of its scripts.
import { useQuery } from "@tanstack/react-query";
import { getDocument, GlobalWorkerOptions, type PDFDocumentProxy } from "pdfjs-dist";
import workerUrl from "pdfjs-dist/build/pdf.worker.min.mjs?url";
import { useEffect, useRef, useState } from "react";
import { useText } from "../text";
import { Button, Problem, Skeleton } from "../ui/basics";

GlobalWorkerOptions.workerSrc = workerUrl;

export default function PdfView({ url, name }: { url: string; name: string }) {
  const t = useText();
  const [page, setPage] = useState(1);
  const found = useQuery({
    queryKey: ["pdf", url],
    gcTime: 0,
    retry: false,
    queryFn: () => getDocument({ url, isEvalSupported: false, enableXfa: false, withCredentials: true }).promise,
  });
  useEffect(() => () => void found.data?.destroy(), [found.data]);
  if (found.isPending) return <Skeleton lines={10} />;
  if (found.error) return <Problem error={found.error} />;
  const last = found.data.numPages;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="min-h-0 flex-1 overflow-auto bg-sunken p-4" tabIndex={0} role="region" aria-label={name}>
        <Sheet document={found.data} page={page} label={`${name}, ${t.file.page(page, last)}`} />
      </div>
      <div className="flex shrink-0 items-center justify-end gap-2 border-t px-3 py-2 text-sm text-muted tabular">
        <span>{t.file.page(page, last)}</span>
        <Button small disabled={page <= 1} onClick={() => setPage(page - 1)}>{t.shortcuts.previousItem}</Button>
        <Button small disabled={page >= last} onClick={() => setPage(page + 1)}>{t.shortcuts.nextItem}</Button>
      </div>
    </div>
  );
}

function Sheet({ document, page, label }: { document: PDFDocumentProxy; page: number; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    let isGone = false;
    let stop = () => {};
    async function draw() {
      const sheet = await document.getPage(page);
      const element = canvas.current;
      if (isGone || !element) return;
      const width = Math.min(element.parentElement?.clientWidth ?? 800, 1000) - 32;
      const view = sheet.getViewport({ scale: (width / sheet.getViewport({ scale: 1 }).width) * window.devicePixelRatio });
      element.width = view.width;
      element.height = view.height;
      const task = sheet.render({ canvas: element, viewport: view });
      stop = () => task.cancel();
      await task.promise;
      if (!isGone) element.dataset.page = String(page);
    }
    draw().catch((problem: unknown) => !isGone && setError(problem));
    return () => {
      isGone = true;
      stop();
    };
  }, [document, page]);
  if (error) return <Problem error={error} />;
  return <canvas ref={canvas} role="img" aria-label={label} className="mx-auto block h-auto max-w-full border bg-white" />;
}
