// size-limit.ts: how large a request body may be, as the service's 413 tell. The specification shows no limit
// (ingestion-api.md 7), so `batch.max_bytes` is where we begin.
//
// A 413 halves it, reckoned from the body that was refused, so that several that were under way count once. It is regained
// slowly: a quarter more after so many accepted bodies of at least half the limit. In memory only: a restart begins
// with the setting and learns again.

export type SizeLimit = {
  readonly bytesMax: number
  /** Below the setting. */
  readonly lowered: boolean
  tooLarge(bodyBytes: number): void
  accepted(bodyBytes: number): void
}

const bytesFloor = 1024
const cleanToRegain = 50
const regainFactor = 1.25

export function createSizeLimit(options: { bytesMax: number }): SizeLimit {
  let bytesMax = options.bytesMax
  let clean = 0
  return {
    get bytesMax() {
      return bytesMax
    },
    get lowered() {
      return bytesMax < options.bytesMax
    },
    tooLarge(bodyBytes) {
      clean = 0
      bytesMax = Math.max(
        Math.min(bytesFloor, options.bytesMax),
        Math.min(bytesMax, Math.floor(bodyBytes / 2)),
      )
    },
    accepted(bodyBytes) {
      if (bytesMax >= options.bytesMax || bodyBytes * 2 < bytesMax) return
      clean += 1
      if (clean < cleanToRegain) return
      clean = 0
      bytesMax = Math.min(options.bytesMax, Math.ceil(bytesMax * regainFactor))
    },
  }
}
