// The terminal makes style sheets as it is set up, and style attributes as it draws. The page's policy allows style
// sheets with the answer's nonce, and properties of an element's style, but no style attributes.

/** Style sheets that `build` makes get the nonce. */
export function withNonce<T>(nonce: string, build: () => T): T {
  const create = document.createElement.bind(document);
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    const made = create(tag, options);
    if (made instanceof HTMLStyleElement) made.nonce = nonce;
    return made;
  }) as typeof document.createElement;
  try {
    return build();
  } finally {
    delete (document as { createElement?: unknown }).createElement;
  }
}

/** A span's style attribute is set as properties, which comes to the same; until the function is called that it gives. */
export function stylesAsProperties(): () => void {
  const spans = HTMLSpanElement.prototype;
  spans.setAttribute = function setAttribute(this: HTMLSpanElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
  return () => {
    delete (spans as { setAttribute?: unknown }).setAttribute;
  };
}
