// silence-watch.ts: finds message sources that are connected and bring nothing for longer than usual. A link
// can be dead without an error: the broker answers pings and delivers nothing. So the links of a silent
// source connect again, once in each such time; with a session nothing is lost by that.
//
// The same for one link among several, which the messages of the others would hide: it is silent where the
// others had so many messages meanwhile that it should have had some, too.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { State, StateSource } from '../../domain/condition-state.ts'
import type { FeedOfSource } from './message-feed.ts'
import type { MessageSource } from './types.ts'

export type SilenceWatch = StateSource & {
  start(): void
  isSilent(source: MessageSource): boolean
  close(): void
}

type Watched = { source: MessageSource; feed: FeedOfSource; silentAfterMs: number; unheardAfterMs: number }

/** What is known of a link: when it was heard, and how many messages its source had then. */
type Heard = { messages: number; atMs: number; ofSource: number; reconnectedAtMs: number | null }

const everyMs = 5000
/** Messages of the source for each of its links, in which a link that has none is silent. */
const sharesMin = 20

export function createSilenceWatch(
  { clock, isHeld }: { clock: Clock; isHeld: () => boolean },
  entries: readonly Watched[],
): SilenceWatch {
  const silent = new Map<MessageSource, { reconnectedAtMs: number }>()
  /** By client id. */
  const heardOf = new Map<MessageSource, Map<string, Heard>>()
  let startedAtMs = 0
  /** When nothing was taken last, because there was no room. */
  let heldAtMs = 0
  let cancel: CancelTimer = () => {}

  function start(): void {
    startedAtMs = clock.monotonic()
    arm()
  }

  function arm(): void {
    const shortest = Math.min(
      ...entries.map((entry) => Math.min(entry.silentAfterMs, entry.unheardAfterMs) / 4),
    )
    cancel = clock.after(Math.min(everyMs, shortest), () => {
      if (isHeld()) heldAtMs = clock.monotonic()
      else
        for (const entry of entries) {
          check(entry)
          checkLinks(entry)
        }
      arm()
    })
  }

  function check({ source, feed, silentAfterMs, unheardAfterMs }: Watched): void {
    const now = clock.monotonic()
    const lastMs = feed.lastMessageAtMs()
    const known = silent.get(source)
    if (known !== undefined && lastMs !== null && now - lastMs < silentAfterMs) {
      silent.delete(source)
      return
    }
    // A link that is not connected has a condition of its own.
    const connected = source.view().links.filter(({ state }) => state === 'connected')
    if (connected.length === 0 || isStandby(source)) return
    const sinceMs = Math.max(
      lastMs ?? startedAtMs,
      known?.reconnectedAtMs ?? 0,
      heldAtMs,
      Math.min(...connected.map((link) => link.sinceMs)),
    )
    // It was said once that none came; from then on the usual time counts.
    const isFirst = lastMs === null && known === undefined
    if (now - sinceMs < (isFirst ? unheardAfterMs : silentAfterMs)) return
    silent.set(source, { reconnectedAtMs: now })
    source.reconnect(null)
  }

  function checkLinks({ source, silentAfterMs }: Watched): void {
    const { links } = source.view()
    // The messages of a partition may go to another member.
    if (links.length < 2 || source.traits.partitioned) return
    const now = clock.monotonic()
    const ofSource = links.reduce((sum, { messages }) => sum + messages, 0)
    const known = heardOf.get(source) ?? new Map<string, Heard>()
    heardOf.set(source, known)
    for (const { clientId, state, sinceMs, messages, lastMessageMs } of links) {
      const heard = known.get(clientId)
      if (heard === undefined || heard.messages !== messages) {
        known.set(clientId, { messages, atMs: lastMessageMs ?? now, ofSource, reconnectedAtMs: null })
        continue
      }
      const quietMs = now - Math.max(heard.atMs, sinceMs, heldAtMs, heard.reconnectedAtMs ?? 0)
      const isShort = ofSource - heard.ofSource < sharesMin * links.length
      if (state !== 'connected' || quietMs < silentAfterMs || isShort) continue
      known.set(clientId, { ...heard, reconnectedAtMs: now })
      source.reconnect(clientId)
    }
  }

  /** Other members get the messages of all its partitions, as far as is known. */
  function isStandby(source: MessageSource): boolean {
    return source.traits.partitioned && source.view().partitions.every(({ role }) => role !== 'active')
  }

  function* states(): Generator<State> {
    const now = clock.monotonic()
    for (const { source, feed } of entries) {
      const messageSource = source.name
      const lastMs = feed.lastMessageAtMs()
      const quietMs = now - (lastMs ?? startedAtMs)
      if (silent.has(source))
        yield {
          code: 'MESSAGE_SOURCE_SILENT',
          messageSource,
          clientId: null,
          quietMs,
          neverHeard: lastMs === null,
        }
      for (const [clientId, { atMs }] of silentLinks(source))
        yield {
          code: 'MESSAGE_SOURCE_SILENT',
          messageSource,
          clientId,
          quietMs: now - atMs,
          neverHeard: false,
        }
    }
  }

  function silentLinks(source: MessageSource) {
    return [...(heardOf.get(source) ?? [])].filter(([, link]) => link.reconnectedAtMs !== null)
  }

  return {
    start,
    states,
    isSilent: (source) => silent.has(source) || silentLinks(source).length > 0,
    close: () => cancel(),
  }
}
