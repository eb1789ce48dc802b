// size-limit.ts: how large a request body may be, learned from answers with 413. The specification shows no
// limit (ingestion-api.md 7), so the limit starts at `batch.max_bytes`.
//
// A 413 to a body that is larger than any accepted one sets the limit to half of the refused body, so that
// several bodies in flight count once. Where bodies of that size are accepted meanwhile, the 413 is about the
// content: one such payload must not make the batches of all others small. The limit grows back slowly: by a
// quarter after `acceptedToGrow` accepted bodies of at least half the limit. In memory only: a restart begins
// with the setting and learns again.

export type SizeLimit = {
  bytesMax(): number
  /** The limit is below the setting. */
  lowered(): boolean
  tooLarge(bodyBytes: number): void
  accepted(bodyBytes: number): void
}

const bytesFloor = 1024
const acceptedToGrow = 50
const growFactor = 1.25
/**
 * A body of nearly the same size that was accepted since the last 413 shows that this 413 is about content.
 */
const similarFactor = 1.5
/** So many 413 to bodies of an accepted size show that the limit of the service changed. */
const unexplainedMax = 3

export function createSizeLimit(options: { bodyBytesMax: number }): SizeLimit {
  /** Infinite until a 413, so that a larger setting is in force at once. */
  let learned = Number.POSITIVE_INFINITY
  const bytesMax = () => Math.min(learned, options.bodyBytesMax)
  let accepted = 0
  let largestAccepted = 0
  /** Since the last 413. */
  let acceptedSince = 0
  let unexplained = 0
  return {
    bytesMax,
    lowered() {
      return learned < options.bodyBytesMax
    },
    tooLarge(bodyBytes) {
      accepted = 0
      const isContent = acceptedSince * similarFactor >= bodyBytes
      acceptedSince = 0
      unexplained = isContent ? 0 : unexplained + 1
      if (isContent || (bodyBytes <= largestAccepted && unexplained < unexplainedMax)) return
      largestAccepted = 0
      unexplained = 0
      learned = Math.max(
        Math.min(bytesFloor, options.bodyBytesMax),
        Math.min(bytesMax(), Math.floor(bodyBytes / 2)),
      )
    },
    accepted(bodyBytes) {
      largestAccepted = Math.max(largestAccepted, bodyBytes)
      acceptedSince = Math.max(acceptedSince, bodyBytes)
      if (learned >= options.bodyBytesMax || bodyBytes * 2 < learned) return
      accepted += 1
      if (accepted < acceptedToGrow) return
      accepted = 0
      learned = Math.ceil(learned * growFactor)
      if (learned >= options.bodyBytesMax) learned = Number.POSITIVE_INFINITY
    },
  }
}
