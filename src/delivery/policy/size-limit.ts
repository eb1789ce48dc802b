// size-limit.ts: how large a request body may be, learned from answers with 413. The specification shows no
// limit (ingestion-api.md 7), so the limit starts at `batch.max_bytes`.
//
// A 413 sets the limit to half of the refused body, so that several bodies in flight count once. The limit
// grows back slowly: by a quarter after `acceptedToGrow` accepted bodies of at least half the limit. In
// memory only: a restart begins with the setting and learns again.

export type SizeLimit = {
  readonly bytesMax: number
  /** The limit is below the setting. */
  readonly lowered: boolean
  tooLarge(bodyBytes: number): void
  accepted(bodyBytes: number): void
}

const bytesFloor = 1024
const acceptedToGrow = 50
const growFactor = 1.25

export function createSizeLimit(options: { bytesMax: number }): SizeLimit {
  let bytesMax = options.bytesMax
  let accepted = 0
  return {
    get bytesMax() {
      return bytesMax
    },
    get lowered() {
      return bytesMax < options.bytesMax
    },
    tooLarge(bodyBytes) {
      accepted = 0
      bytesMax = Math.max(
        Math.min(bytesFloor, options.bytesMax),
        Math.min(bytesMax, Math.floor(bodyBytes / 2)),
      )
    },
    accepted(bodyBytes) {
      if (bytesMax >= options.bytesMax || bodyBytes * 2 < bytesMax) return
      accepted += 1
      if (accepted < acceptedToGrow) return
      accepted = 0
      bytesMax = Math.min(options.bytesMax, Math.ceil(bytesMax * growFactor))
    },
  }
}
