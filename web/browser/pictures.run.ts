import { it } from "vitest";
import { takePictures } from "./pictures";

it("takes pictures", async () => {
  await takePictures(process.env.WORKBENCH_PICTURES ?? "", process.env.WORKBENCH_ONLY);
});
