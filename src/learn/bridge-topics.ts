// bridge-topics.ts: the topic filters with which a bridge gets the messages of the proposed sources. Never
// more than was listened to: the user of the broker may have no right to more.

import { covers, filterText, parseTopic, type TopicPattern } from '../mapping/mapping.ts'
import type { Proposal, Proposed } from './types.ts'

/** Filters of a bridge at most; beyond that it subscribes to what was listened to. */
const filtersMax = 64

/** `heard`: the filter that was listened to. Empty where no source can take messages of a bridge. */
export function bridgeTopics({ proposals }: Pick<Proposed, 'proposals'>, heard: string): string[] {
  const listened = parseTopic(isPlain(heard) ? heard : '#')
  const filters = proposals.filter(isForBridge).flatMap(({ topics, shapes }) => {
    const found = shapes.filter(({ filter }) => isPlain(filter)).map(({ filter }) => parseTopic(filter))
    return topics.flatMap((text): TopicPattern[] => {
      const topic = parseTopic(text)
      // Presets list the topics of all variants of a format; some servers have a message on several of them.
      const own = found.filter((shape) => covers(topic, shape))
      if (own.length === 0) return []
      if (covers(listened, topic)) return [topic]
      return covers(topic, listened) ? [listened] : own
    })
  })
  const texts = [...new Set(filters.filter((one) => !isNarrower(one, filters)).map(filterText))]
  return texts.length > filtersMax ? [heard] : texts
}

/** Devices that are named by their connection have no name in messages of a bridge. */
export function isForBridge({ fit }: Proposal): boolean {
  return !fit.namedBySender
}

/** Braces would be captures, and filters of a bridge may have none. */
function isPlain(filter: string): boolean {
  return !/[{}]/.test(filter)
}

/** Another filter has its topics, too: a broker may send messages of both twice. */
function isNarrower(one: TopicPattern, filters: readonly TopicPattern[]): boolean {
  return filters.some((other) => covers(other, one) && !covers(one, other))
}
