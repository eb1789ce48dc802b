// source-choice.ts: which source has a message, where several have its topic.
//
//   taken      by the first source, in the order of the config, whose `when` holds for a record of the
//              message, or that has no `when`. A rule of `refuse`, which is checked before `when`, takes
//              it too.
//   unread     a source that cannot read the message does not take it: the bytes are not of its encoding,
//              or what `each` selects is no object
//   not taken  by any: where sources could not read it, the last of these refuses it. Otherwise the last
//              source of the topic ignores it, by its `when`.
//
// All else that a source says about its messages (`exclude`, `retained`, `wills`, devices that are ignored or
// quarantined, times) counts once it has the message. So nothing is noted or remembered here, but by decoders
// with memory: those of all sources of the topic see the message, each once.

import { assertNever } from '../../std/assert.ts'
import type { Message } from '../../domain/message.ts'
import type { SourcePlan } from '../compile/source-plan.ts'
import { withinLimit } from '../expression/expression.ts'
import type { OtherController } from '../extract/j1939.ts'
import { addPacketProperties } from '../path/packet-properties.ts'
import { isRecord } from '../path/path-eval.ts'
import { selectRecords } from '../path/record-selection.ts'
import type { Decoded, MapResult, StatefulDecoded } from '../types.ts'
import type { Route } from './routing.ts'

export type Choice = {
  /** Of the source that has the message. */
  route: Route
  /** The message as this source decodes it; null where it did not yet. */
  decoded: StatefulDecoded | null
  /** What other decoders with memory made of it. */
  others: readonly StatefulDecoded[]
}

/** Hears of each source that does not take a message; `decoded`: as it decodes it. */
export type OnDeclined = (route: Route, decoded: Decoded, message: Message) => void

type Verdict = 'taken' | 'declined' | 'unread'

/** `first`: the route of a topic that several sources have. */
export function chooseSource(
  first: Route,
  message: Message,
  live: boolean,
  onDeclined: OnDeclined | null,
): Choice {
  /** Sources of one encoding without memory decode the message once. */
  const decodings = new Map<unknown, StatefulDecoded>()
  const route = choose()
  const others: StatefulDecoded[] = []
  for (let one: Route | null = first; one !== null; one = one.next)
    if (one !== route && one.decode !== null) others.push(decode(one))
  return { route, decoded: decodings.get(decoderOf(route)) ?? null, others }

  function choose(): Route {
    let unread: Route | null = null
    for (let one = first; ;) {
      // The last one has what is left.
      if (one.next === null && unread === null) return one
      const verdict = verdictOf(one)
      if (verdict === 'taken') return one
      onDeclined?.(one, decode(one), message)
      if (verdict === 'unread') unread = one
      if (one.next === null) return unread ?? one
      one = one.next
    }
  }

  function verdictOf(one: Route): Verdict {
    const { source } = one.runtime
    if (source.takes === null) return 'taken'
    const decoded = decode(one)
    switch (decoded.kind) {
      case 'value':
        // An expression that reaches its limit does so again with the record, which is refused then.
        return withinLimit(() => verdictOn(one, source.takes!, decoded.value, message)) ?? 'taken'
      case 'refused':
        return 'unread'
      case 'empty':
      case 'ignored':
        return 'taken'
      default:
        return assertNever(decoded)
    }
  }

  function decode(one: Route): StatefulDecoded {
    const decoder = decoderOf(one)
    const known = decodings.get(decoder)
    if (known !== undefined) return known
    const decoded = decodedBy(one, message, live)
    decodings.set(decoder, decoded)
    return decoded
  }
}

/** What the decoders of other sources ask to be done with the message is done with its result. */
export function withOthers(result: MapResult, { others }: Choice): MapResult {
  if (others.length === 0) return result
  const writes = [...others.flatMap((other) => other.writes ?? []), ...(result.writes ?? [])]
  const rebirth = result.rebirth ?? others.find((other) => other.rebirth !== undefined)?.rebirth
  return { ...result, writes, rebirth }
}

function decoderOf({ decode, runtime }: Route): unknown {
  return decode ?? runtime.decode
}

function decodedBy({ decode, runtime, ...route }: Route, message: Message, live: boolean): StatefulDecoded {
  if (decode === null) return runtime.decode === null ? { kind: 'empty' } : runtime.decode(message.bytes)
  // A decoder learns nothing from messages that its source does not take in any case.
  const isSeen =
    !route.excluded &&
    !(message.retain && runtime.source.retained === 'ignore') &&
    (message.will !== true || runtime.source.wills === 'take')
  return decode(message.bytes, message.arrivedAt, live && isSeen)
}

function verdictOn(
  { runtime: { source }, captures }: Route,
  takes: NonNullable<SourcePlan['takes']>,
  value: unknown,
  message: Message,
): Verdict {
  const root = rootOf(source, captures, value, message)
  let verdict: Verdict = 'declined'
  const { records } = selectRecords(source.each, root, captures, source.recordsMax)
  if (records.length > source.recordsMax) return 'taken'
  for (const place of records) {
    if (!isRecord(place.record)) verdict = 'unread'
    else if (takes(place)) return 'taken'
  }
  return verdict
}

/**
 * The message with what `extract` unpacks. Collected values are unpacked when their record is complete. `at`
 * gets what other controllers send.
 */
export function rootOf(
  { extract, coalesce, readsProperties }: SourcePlan,
  captures: readonly string[],
  value: unknown,
  message: Message,
  at?: { others: OtherController[] | null },
): unknown {
  if (readsProperties) addPacketProperties(value, message)
  if (extract === null || coalesce !== null) return value
  const others: OtherController[] = []
  const root = extract(value, { captures, others })
  if (at !== undefined) at.others = others
  if (readsProperties && root !== value) addPacketProperties(root, message)
  return root
}
