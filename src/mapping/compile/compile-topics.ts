// compile-topics.ts: the topics of a source beside those of the sources above it.
//
// The first source in the order of the config takes the messages of a topic. One with `when` takes some of
// them, and leaves the others to the sources below (routing/source-choice.ts).

import { quote } from '../../std/quote.ts'
import type { SourceConfig } from '../config.ts'
import { covers, overlaps, parseTopic, type TopicPattern } from '../path/topic-pattern.ts'
import type { Scope } from './compile-scope.ts'

/** Each of them may decode a message. */
const sourcesOfTopicMax = 16

/** A topic of a source above. */
export type EarlierTopic = { source: SourceConfig; pattern: TopicPattern }

/** Undefined where one is malformed. Adds them to `earlier`. `scope`: that of the source. */
export function compileSourceTopics(
  source: SourceConfig,
  earlier: EarlierTopic[],
  { at, report }: Scope,
): readonly TopicPattern[] | undefined {
  const { topic } = source
  const scope = at('topic')
  const patterns: TopicPattern[] = []
  const texts = typeof topic === 'string' ? [topic] : topic
  for (const [index, text] of texts.entries()) {
    const keys = typeof topic === 'string' ? [] : [index]
    const pattern = scope.compile(keys, () => parseTopic(text))
    if (!pattern) continue
    const hidden = hiddenBy(source, pattern, earlier)
    if (hidden !== null) scope.report(keys, `is never reached: ${hidden}`)
    patterns.push(pattern)
  }
  checkShared(source, patterns, earlier, report)
  earlier.push(...patterns.map((pattern) => ({ source, pattern })))
  return patterns.length === texts.length ? patterns : undefined
}

/** Whether `when` decides which messages are those of the source, before they are collected or evaluated. */
export function takesSome({ when, coalesce }: SourceConfig): boolean {
  return when !== undefined && coalesce === undefined
}

/** Why no message of the pattern is left by the sources above; null where some may be. */
function hiddenBy(
  source: SourceConfig,
  pattern: TopicPattern,
  earlier: readonly EarlierTopic[],
): string | null {
  const above = earlier.filter(
    (other) => covers(other.pattern, pattern) && includes(other.source.from, source.from),
  )
  const whole = above.find((other) => !takesSome(other.source))?.source
  if (whole !== undefined) {
    const act =
      whole.when === undefined
        ? 'With `when` it would take only some of the messages.'
        : 'Its `when` leaves none to others, because it has coalesce.'
    return `the source ${quote(whole.name, 64)} above takes every topic that it matches. ${act}`
  }
  const same = above.find((other) => takesSame(other.source, source))
  return same === undefined
    ? null
    : `the source ${quote(same.source.name, 64)} above takes the same messages, by the same \`when\`.`
}

function takesSame(one: SourceConfig, other: SourceConfig): boolean {
  const rule = ({ when, encoding, compression, charset, each, extract, keys }: SourceConfig) =>
    JSON.stringify([when, encoding, compression, charset, each, extract, keys])
  return rule(one) === rule(other)
}

function checkShared(
  source: SourceConfig,
  patterns: readonly TopicPattern[],
  earlier: readonly EarlierTopic[],
  report: Scope['report'],
): void {
  const shared = earlier.filter(
    (other) =>
      takesSome(other.source) &&
      isCommon(other.source.from, source.from) &&
      patterns.some((pattern) => overlaps(other.pattern, pattern)),
  )
  const names = new Set(shared.map((other) => other.source.name))
  if (names.size >= sourcesOfTopicMax)
    report(
      ['topic'],
      `has messages of ${names.size} sources above. At most ${sourcesOfTopicMax} sources may share a topic.`,
    )
  const other = shared.find(
    (one) => !patterns.every((pattern) => hasSameOwner(source, pattern, one.source, one.pattern)),
  )
  if (other !== undefined)
    report(
      ['identity'],
      `must be the same level of the topic as in the source ${quote(other.source.name, 64)} above, which ` +
        'shares topics with it: a topic has one owner.',
    )
}

function hasSameOwner(
  one: SourceConfig,
  pattern: TopicPattern,
  other: SourceConfig,
  otherPattern: TopicPattern,
): boolean {
  if (one.identity === undefined || other.identity === undefined || !overlaps(pattern, otherPattern))
    return true
  return levelOf(pattern, one.identity) === levelOf(otherPattern, other.identity)
}

function levelOf({ levels }: TopicPattern, capture: string): string {
  const index = levels.findIndex((level) => level.kind !== 'literal' && level.capture === capture)
  return `${index} ${levels[index]?.kind}`
}

function includes(all: SourceConfig['from'], some: SourceConfig['from']): boolean {
  return all === undefined || (some?.every((name) => all.includes(name)) ?? false)
}

function isCommon(one: SourceConfig['from'], other: SourceConfig['from']): boolean {
  return one === undefined || other === undefined || one.some((name) => other.includes(name))
}
