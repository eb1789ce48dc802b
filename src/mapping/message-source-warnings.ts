// message-source-warnings.ts: where the sources of the mapping and the message sources do not fit together:
// topics that nothing delivers or nobody reads, and names of clients that a bridge does not know. `check` and
// the start warn of them.

import { embeddedBrokerName } from '../domain/message.ts'
import { quote } from '../std/quote.ts'
import type { SourceConfig } from './config.ts'
import { covers, overlaps, parseTopic, senderNames, type TopicPattern } from './path/topic-pattern.ts'
import { Malformed } from './path/text-cursor.ts'

/** What the mapping must know of a bridge. */
export type BridgeTopics = { name: string; topics: readonly string[] }

type Warning = { what: string; act: string }
type Pattern = { text: string; pattern: TopicPattern }
type Bridge = { name: string; patterns: readonly Pattern[] }

/** `listens`: devices can connect to the gateway. */
export function messageSourceWarnings(
  sources: readonly SourceConfig[],
  bridges: readonly BridgeTopics[],
  listens: boolean,
): Warning[] {
  const known = bridges.map(({ name, topics }): Bridge => ({ name, patterns: patternsOf(topics) }))
  return [
    ...sources.flatMap((source) => [
      ...topicsWithoutMessages(source, known, listens),
      ...namesOfClients(source, known),
    ]),
    ...topicsWithoutSource(sources, known),
  ]
}

function topicsWithoutMessages(
  source: SourceConfig,
  bridges: readonly Bridge[],
  listens: boolean,
): Warning[] {
  if (listens && isFrom(source, embeddedBrokerName)) return []
  const own = bridges.filter(({ name }) => isFrom(source, name))
  const names = own.map(({ name }) => name).join(', ') || 'the listeners'
  const topics = patternsOf(topicsRead(source))
  const missing = topics.filter((topic) => !own.some((bridge) => delivers(bridge, topic)))
  // A preset lists every topic that its devices may have.
  if (source.preset !== undefined && missing.length < topics.length) return []
  return missing.map(({ text }) => ({
    what: `The source ${quote(source.name, 64)} gets no messages on ${quote(text, 120)}: nothing in ingest delivers them to it.`,
    act:
      own.length === 0
        ? 'Add a listener to ingest.broker.listeners, or correct `from`.'
        : `Add the topic to \`topics\` of ${names}, or correct \`from\` or \`topic\` of the source.`,
  }))
}

/** The topics of a source whose messages it does not ignore. */
export function topicsRead({ topic, exclude }: Pick<SourceConfig, 'topic' | 'exclude'>): string[] {
  const excluded = patternsOf(exclude)
  return patternsOf(topic)
    .filter(({ pattern }) => !excluded.some((other) => covers(other.pattern, pattern)))
    .map(({ text }) => text)
}

function topicsWithoutSource(sources: readonly SourceConfig[], bridges: readonly Bridge[]): Warning[] {
  return bridges.flatMap((bridge) =>
    untakenOf(sources, bridge).map((text) => ({
      what: `Bridge ${quote(bridge.name, 64)}: no source takes messages on ${quote(text, 120)}; they become dead letters.`,
      act: 'Remove the topic from the bridge, or add a source for it.',
    })),
  )
}

/** The topics of bridges that no source takes, each as \`BRIDGE: TOPIC\`. */
export function untakenTopics(sources: readonly SourceConfig[], bridges: readonly BridgeTopics[]): string[] {
  return bridges.flatMap(({ name, topics }) =>
    untakenOf(sources, { name, patterns: patternsOf(topics) }).map((text) => `${name}: ${text}`),
  )
}

function untakenOf(sources: readonly SourceConfig[], { name, patterns }: Bridge): string[] {
  const read = sources.filter((source) => isFrom(source, name)).flatMap(({ topic }) => patternsOf(topic))
  return patterns
    .filter(({ pattern }) => !read.some((topic) => overlaps(pattern, topic.pattern)))
    .map(({ text }) => text)
}

/** A broker does not say which client published. */
function namesOfClients(source: SourceConfig, bridges: readonly Bridge[]): Warning[] {
  const rules = [source.device ?? []].flat()
  const used = senderNames.filter((name) =>
    rules.some((rule) => typeof rule === 'string' && rule.includes(`{${name}}`)),
  )
  if (used.length === 0 && source.identity === undefined) return []
  const topics = patternsOf(source.topic)
  const own = bridges.filter(
    (bridge) => isFrom(source, bridge.name) && topics.some((topic) => delivers(bridge, topic)),
  )
  if (own.length === 0) return []
  const names = own.map(({ name }) => quote(name, 64)).join(', ')
  const subject = `The source ${quote(source.name, 64)}`
  const only = '`from: [broker]` limits a source to clients of the gateway.'
  const warnings: Warning[] = []
  if (used.length > 0)
    warnings.push({
      what:
        `${subject} names devices by ${used.map((name) => `{${name}}`).join(', ')}, which messages of the bridge ` +
        `${names} do not have${rules.length > 1 ? '; those without another name become dead letters' : '; they become dead letters'} (NO_DEVICE).`,
      act: `Take the name from the topic ({device}) or from the message ({ path: ... }). ${only}`,
    })
  if (source.identity !== undefined)
    warnings.push({
      what: `${subject} has \`identity\`, which is not checked for messages of the bridge ${names}: the broker does not say who sent them.`,
      act: `Let the broker check who may publish to which topic. ${only}`,
    })
  return warnings
}

function isFrom({ from }: SourceConfig, name: string): boolean {
  return from === undefined || from.includes(name)
}

function delivers({ patterns }: Bridge, topic: Pattern): boolean {
  return patterns.some(({ pattern }) => overlaps(pattern, topic.pattern))
}

/** A malformed one is a problem of its own. */
function patternsOf(topics: string | readonly string[]): Pattern[] {
  return [topics].flat().flatMap((text) => {
    try {
      return [{ text, pattern: parseTopic(text) }]
    } catch (error) {
      if (error instanceof Malformed) return []
      throw error
    }
  })
}
