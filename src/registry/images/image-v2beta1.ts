// The handlers of ImagesService in version 2beta1.
import { type GetSizeRequest, ImagesService } from "#gen/chainguard/platform/registry/v2beta1/images_pb.js";
import { type Handlers, withPreparation } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { createImageSource, getSize, type ImageDeps, listArchitectures } from "./image.js";

/** Creates ImagesService. */
export function imagesV2beta1(deps: ImageDeps) {
  const { readSizes } = createImageSource(deps);
  const handlers: Handlers<typeof ImagesService> = {
    getArchitectures: withPreparation({
      prepare: readSizes,
      handle: (_, __, known) => ({ architectures: listArchitectures(known) }),
    }),

    getSize: withPreparation({
      prepare: (request: GetSizeRequest, call) => readSizes(request, call),
      handle: ({ digest, architecture }, _, known) => getSize(known, digest, architecture),
    }),
  };
  return serve(ImagesService, handlers);
}
