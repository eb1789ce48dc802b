// topic-pattern.ts: which source a topic belongs to.
//
//   telemetry/v1/{device}    a named capture matches one level, as `+` does
//   /hfp/v2/+/{event}/#      a leading slash and empty levels are levels like any other (MQTT 4.7.1)
//   ovms/{user}/{metric#}    such a last capture matches all further levels, as `#` does, with their slashes
//
// All patterns become one tree of levels. A topic is looked up in it without being split, along the literal
// and the wildcard branch of each level, so the work is bounded by the patterns and not by the topic. When
// several patterns match, the first in the order of the config wins.

import { Malformed } from './text-cursor.ts'
import { quote } from '../../std/quote.ts'

type Level = { kind: 'literal'; text: string } | { kind: 'any' | 'rest'; capture: string | null }

export type TopicPattern = {
  levels: readonly Level[]
  /** Names of the captures, in the order of their levels. */
  captures: readonly string[]
}

/** Finds the index of the first pattern that matches, or -1. */
export type MatchTopic = (topic: string) => number

/** [MQTT-4.7.3-3]: a topic is at most 65,535 bytes. */
const topicBytesMax = 65_535

/** Names of the sender in templates; a capture must not hide them. */
export const senderNames = ['clientid', 'username', 'certificate', 'identity'] as const

/** The same for the message. */
export const messageNames = ['content_type'] as const

const reservedNames: readonly string[] = [...senderNames, ...messageNames]

/** Reads a pattern; throws Malformed. */
export function parseTopic(text: string): TopicPattern {
  if (text === '') throw new Malformed('must not be empty')
  if (text.includes('\0')) throw new Malformed('must not have a NUL character')
  if (Buffer.byteLength(text) > topicBytesMax) throw new Malformed(`must be at most ${topicBytesMax} bytes`)
  const texts = text.split('/')
  const levels = texts.map((level, index) => parseLevel(level, index === texts.length - 1))
  const captures: string[] = []
  for (const level of levels) {
    if (level.kind === 'literal' || level.capture === null) continue
    if (captures.includes(level.capture)) throw new Malformed(`names the capture {${level.capture}} twice`)
    captures.push(level.capture)
  }
  return { levels, captures }
}

/** As the config writes it. */
export function patternText({ levels }: TopicPattern): string {
  return levels
    .map((level) => {
      if (level.kind === 'literal') return level.text
      const mark = level.kind === 'rest' ? '#' : ''
      return level.capture === null ? mark || '+' : `{${level.capture}${mark}}`
    })
    .join('/')
}

function parseLevel(text: string, isLast: boolean): Level {
  if (text === '+') return { kind: 'any', capture: null }
  if (text === '#') {
    if (isLast) return { kind: 'rest', capture: null }
    throw new Malformed('may have "#" only as its last level')
  }
  const rest = text.endsWith('#}')
  if (text.includes('+') || (text.includes('#') && !rest))
    throw new Malformed(`has ${quote(text, 40)}: "+" and "#" stand for whole levels`)
  if (!text.includes('{') && !text.includes('}')) return { kind: 'literal', text }
  const name = text.slice(1, rest ? -2 : -1)
  if (!/^\{[A-Za-z_]\w*#?\}$/.test(text))
    throw new Malformed(
      `has ${quote(text, 40)}: a capture is a whole level such as {device}, letters and digits`,
    )
  if (rest && !isLast) throw new Malformed(`may have ${quote(text, 40)} only as its last level`)
  if (reservedNames.includes(name)) {
    const use = messageNames.some((own) => own === name) ? 'a property of the message' : 'the sender'
    throw new Malformed(
      `cannot name a capture {${name}}: templates use that name for ${use}; choose another one`,
    )
  }
  return { kind: rest ? 'rest' : 'any', capture: name }
}

/** The MQTT filter, without names of captures. */
export function filterText({ levels }: TopicPattern): string {
  const texts = { any: '+', rest: '#' }
  return levels.map((level) => (level.kind === 'literal' ? level.text : texts[level.kind])).join('/')
}

/** Whether every topic that `later` matches is matched by `earlier` too. */
export function covers(earlier: TopicPattern, later: TopicPattern): boolean {
  for (const [index, level] of earlier.levels.entries()) {
    const other = later.levels[index]
    // A leading wildcard matches no topic that starts with `$`, a literal does.
    if (index === 0 && level.kind !== 'literal' && other?.kind === 'literal' && other.text.startsWith('$'))
      return false
    if (level.kind === 'rest') return true
    if (!other || other.kind === 'rest') return false
    if (level.kind === 'literal' && (other.kind !== 'literal' || other.text !== level.text)) return false
  }
  return later.levels.length === earlier.levels.length
}

/** Whether there is a topic that both match. */
export function overlaps(one: TopicPattern, other: TopicPattern): boolean {
  for (let index = 0; ; index += 1) {
    const [a, b] = [one.levels[index], other.levels[index]]
    if (index === 0 && (hidesFrom(a, b) || hidesFrom(b, a))) return false
    // `a/#` matches `a`, too.
    if (a?.kind === 'rest' || b?.kind === 'rest') return true
    if (a === undefined || b === undefined) return a === b
    if (a.kind === 'literal' && b.kind === 'literal' && a.text !== b.text) return false
  }
}

/** A leading wildcard matches no topic that starts with `$`. */
function hidesFrom(wildcard: Level | undefined, level: Level | undefined): boolean {
  return wildcard?.kind !== 'literal' && level?.kind === 'literal' && level.text.startsWith('$')
}

type Node = {
  literals: Map<string, Node>
  any: Node | null
  /** The pattern that ends in `#` below this node. */
  rest: number
  /** The pattern that ends at this node. */
  end: number
}

const none = Number.POSITIVE_INFINITY

export function compileTopics(patterns: readonly TopicPattern[]): MatchTopic {
  const root = emptyNode()
  for (const [index, { levels }] of patterns.entries()) insert(root, levels, index)
  return (topic) => {
    const found = search(root, topic, 0, topic.startsWith('$'))
    return found === none ? -1 : found
  }
}

function insert(root: Node, levels: readonly Level[], index: number): void {
  let node = root
  for (const level of levels) {
    if (level.kind === 'rest') {
      node.rest = Math.min(node.rest, index)
      return
    }
    node = level.kind === 'literal' ? literalBelow(node, level.text) : (node.any ??= emptyNode())
  }
  node.end = Math.min(node.end, index)
}

function literalBelow(node: Node, text: string): Node {
  const known = node.literals.get(text)
  if (known) return known
  const made = emptyNode()
  node.literals.set(text, made)
  return made
}

/** `start`: the start of the next level; beyond the end of the topic there is none. */
function search(node: Node, topic: string, start: number, literalOnly: boolean): number {
  // [MQTT-4.7.2-1]: a leading wildcard does not match a topic that starts with `$`.
  let found = literalOnly ? none : node.rest
  if (start > topic.length) return Math.min(found, node.end)
  const slash = topic.indexOf('/', start)
  const end = slash === -1 ? topic.length : slash
  if (node.literals.size > 0) {
    const below = node.literals.get(topic.slice(start, end))
    if (below) found = Math.min(found, search(below, topic, end + 1, false))
  }
  if (node.any && !literalOnly) found = Math.min(found, search(node.any, topic, end + 1, false))
  return found
}

function emptyNode(): Node {
  return { literals: new Map(), any: null, rest: none, end: none }
}

/** The captures of a topic that matches `pattern`. */
export function capturesIn({ levels }: TopicPattern, topic: string): readonly string[] {
  const captures: string[] = []
  let start = 0
  for (const level of levels) {
    const slash = topic.indexOf('/', start)
    const end = slash === -1 || level.kind === 'rest' ? topic.length : slash
    if (level.kind !== 'literal' && level.capture !== null) captures.push(topic.slice(start, end))
    start = end + 1
  }
  // They are kept for each topic: a list that has grown has room for seventeen.
  return captures.slice()
}

export type TopicFilter =
  { kind: 'filter'; matches(topic: string): boolean } | { kind: 'malformed'; why: string }

/** A filter that a person typed. */
export function topicFilterOf(text: string): TopicFilter {
  try {
    const match = compileTopics([parseTopic(text)])
    return { kind: 'filter', matches: (topic) => match(topic) !== -1 }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return { kind: 'malformed', why: error.message }
  }
}
