// goodput.ts: how large a batch may be, how many go at once, and how long each may take, by what the link to
// the service carries. On a link of a few kilobytes per second a full batch needs minutes: with the limits of
// a fast link it would time out again and again, and nothing would arrive.
//
// The goodput of a submission is its body bytes over the time to its answer, or what left the machine until
// it was cut off. A body that is small against the limit shows the latency and not the link; it counts only
// where it was slow.
//
//   size      about 30 s of upload. It begins at 32 KiB, and each full batch that was answered within 15 s
//             doubles it. A time-out halves it.
//   deadline  the timeout of the config plus twice the expected upload, at most 4 minutes: a signature is
//             valid for about five. While the rate is unknown, at most twice the timeout. A batch that was
//             written completely and timed out gets twice the time at the next try, because the kernel takes
//             bytes faster than the link.
//   places    one for each 2 KiB/s of all submissions together: a slow link gains nothing from several
//             uploads side by side. Not fewer, because a slow service looks like a slow link, and it gains.
//
// In memory only: a restart begins small again, and five answers later it is back at 1 MiB. A batch that was
// sealed before takes about 30 s on the link that it was made for. Where that is too long, the first time-out
// shows the rate, or, if the kernel took all of the bytes, doubles the deadline.

import type { ProviderOptions } from '../delivery-options.ts'

export type Goodput = {
  /** Largest request body of the next batch. */
  bytesMax(): number
  /** Submissions at once. */
  placesMax(): number
  /**
   * How long a submission may take, in ms; `timeouts`: of this batch so far, after it was written completely.
   */
  timeoutMs(bodyBytes: number, timeouts: number): number
  /** Expected upload of a body, in ms; 0 while unknown. */
  uploadMs(bodyBytes: number): number
  /** Of one submission, in bytes per second; null while unknown. */
  bytesPerS(): number | null
  /** A submission starts; ended() follows. */
  began(): void
  ended(submission: EndedSubmission): void
}

export type EndedSubmission = {
  bodyBytes: number
  /** Body bytes that left the machine. */
  bytesSent: number
  end: 'answered' | 'timed out' | 'failed'
  tookMs: number
}

type GoodputOptions = Pick<ProviderOptions, 'batch' | 'maxInFlight' | 'timeoutMs'>

const uploadMs = 30_000
const slowMs = 10_000
const bytesFirst = 32 * 1024
const bytesFloor = 8 * 1024
/** Smaller bodies say nothing about the link, however slow they are. */
const sampleBytesMin = 16 * 1024
/** Bytes per ms: while nothing is known, least that is believed, and what justifies one place. */
const rateUnknown = 4
const rateMin = 0.1
const rateOfPlace = 2.048
const deadlineMaxMs = 240_000

export function createGoodput(options: GoodputOptions): Goodput {
  /** What the link carries. The settings bound it where it is used, because a reload changes them. */
  let bytesLearned = bytesFirst
  let placesLearned = Number.POSITIVE_INFINITY
  const bytesMax = () => Math.min(bytesLearned, options.batch.bodyBytesMax)
  let rate: number | null = null
  let running = 0

  return {
    bytesMax,
    placesMax: () => Math.min(placesLearned, options.maxInFlight),
    bytesPerS() {
      return rate === null ? null : rate * 1000
    },
    timeoutMs(bodyBytes, timeouts) {
      const uploadsMs =
        rate === null ? Math.min(options.timeoutMs, (2 * bodyBytes) / rateUnknown) : (2 * bodyBytes) / rate
      const expectedMs = options.timeoutMs + uploadsMs
      const longerMs = bodyBytes < sampleBytesMin ? expectedMs : expectedMs * 2 ** Math.min(timeouts, 10)
      return Math.ceil(Math.max(options.timeoutMs, Math.min(deadlineMaxMs, longerMs)))
    },
    uploadMs: (bodyBytes) => (rate === null ? 0 : bodyBytes / rate),
    began() {
      running += 1
    },
    ended,
  }

  function ended({ bodyBytes, bytesSent, end, tookMs }: EndedSubmission): void {
    const side = running
    running -= 1
    if (end === 'failed') return
    const isFull = bodyBytes >= bytesMax() / 2
    if (!isFull && (tookMs < slowMs || bodyBytes < sampleBytesMin)) return
    if (end === 'timed out') {
      if (bodyBytes < sampleBytesMin) return
      resize(bytesMax() / 2)
      // All of it was written: the service may hang, which says nothing about the link.
      if (bytesSent === 0 || bytesSent >= bodyBytes) return
    }
    const bytes = end === 'answered' ? bodyBytes : bytesSent
    const sample = Math.max(rateMin, bytes / Math.max(tookMs, 1))
    rate = rate === null ? sample : (rate + sample) / 2
    resize(Math.min(isFull && end === 'answered' ? 2 * bytesMax() : bytesMax(), sample * uploadMs))
    placesLearned = Math.max(1, Math.floor((sample * side) / rateOfPlace))
  }

  function resize(bytes: number): void {
    bytesLearned = Math.max(bytesFloor, Math.min(options.batch.bodyBytesMax, Math.floor(bytes)))
  }
}
