// example-topics.ts: topics that a source reads, for messages that come without one.
//
//   application/{application}/device/{device}/event/{event}   when: 'topic.event == "up"'
//     application/application/device/device/event/up
//
// A capture gets a word that the source asks for: in its conditions, in the names of the values that it
// collects, or in the topics of its encoding. Where it asks for none, the name of the capture is as good as
// any other word. Topics that `exclude` has are left out.

import { collectedNamesOf, topicFilterOf } from '../../mapping/mapping.ts'
import type { SourceConfig } from '../../mapping/config.ts'

/** Topics of one pattern; more would not help a person. */
const topicsMax = 200

/** Other topics that are named. */
const othersMax = 8

/** The most typical one first; without two of the same. */
export function exampleTopics(source: SourceConfig): string[] {
  const excluded = source.exclude.map(topicFilterOf)
  const topics = [source.topic].flat().flatMap((pattern) => topicsOf(pattern, source))
  return [...new Set(topics)].filter(
    (topic) => !excluded.some((filter) => filter.kind === 'filter' && filter.matches(topic)),
  )
}

/** Says which of the topics is used, and which others there are. */
export function chosenTopicText([first = '', ...others]: readonly string[], source: SourceConfig): string {
  const shown = others.slice(0, othersMax)
  const more = others.length - shown.length
  const also =
    shown.length === 0 ? '' : ` It also reads ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
  const act =
    typeof source.coalesce?.name === 'string'
      ? 'It collects values of several topics: give --ndjson with the topic of each message.'
      : 'Give --topic for the topic of your device.'
  return `The messages are mapped with the topic ${first} of the preset.${also} ${act}\n`
}

function topicsOf(pattern: string, source: SourceConfig): string[] {
  return valuesOf(pattern, source)
    .flatMap((values) => fill(pattern, values))
    .slice(0, topicsMax)
}

type Values = ReadonlyMap<string, readonly string[]>

/** The values of the captures: those of the encoding, or those that the conditions and names ask for. */
function valuesOf(pattern: string, source: SourceConfig): Values[] {
  if (source.encoding === 'sparkplug') return sparkplugValues(pattern)
  const captures = [...pattern.matchAll(/\{(\w+)#?\}/g)].map(([, name = '']) => name)
  const asked = new Map(captures.map((name) => [name, wordsAskedFor(name, source)]))
  const collected = collectedValues(source)
  return collected.length === 0 ? [asked] : collected.map((values) => new Map([...asked, ...values]))
}

/** The topics of the pattern with each of the values. */
function fill(pattern: string, values: Values): string[] {
  let topics = [pattern.replace(/\/#$/, '')]
  for (const [, name = ''] of pattern.matchAll(/\{(\w+)#?\}/g)) {
    const words = values.get(name) ?? []
    topics = topics.flatMap((topic) =>
      (words.length === 0 ? [name] : words).map((word) =>
        topic.replace(`{${name}}`, () => word).replace(`{${name}#}`, () => word),
      ),
    )
  }
  return topics.map((topic) =>
    topic
      .split('/')
      .map((level) => (level === '+' || level === '#' ? 'x' : level))
      .join('/'),
  )
}

/** The texts that conditions compare a capture with: `topic.event == "up"`, `topic.event in ["vp"]`. */
function wordsAskedFor(name: string, option: unknown): string[] {
  if (typeof option === 'string') {
    const equal = option.matchAll(new RegExp(`topic\\.${name}\\s*==\\s*("[^"]*"|'[^']*')`, 'g'))
    const listed = option.matchAll(new RegExp(`topic\\.${name}\\s+in\\s*\\[([^\\]]*)\\]`, 'g'))
    const texts = [...equal, ...listed].map(([, text = '']) => text).join(',')
    return [...new Set([...texts.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, a, b]) => a ?? b ?? ''))]
  }
  if (typeof option !== 'object' || option === null) return []
  return [...new Set(Object.values(option).flatMap((one: unknown) => wordsAskedFor(name, one)))]
}

/** The captures of each collected name, that of the position first. */
function collectedValues(source: SourceConfig): Map<string, string[]>[] {
  const { coalesce, map, extract } = source
  if (typeof coalesce?.name !== 'string') return []
  const template = coalesce.name
  const captures = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const form = new RegExp(
    `^${template
      .split(/\{\w+\}/)
      .map(escaped)
      .join('(.+?)')}$`,
  )
  const wanted = [map.latitude?.path ?? []]
    .flat()
    .map((path) => (typeof path === 'string' ? path : path.path))
  const isOf = (name: string, paths: readonly string[]) =>
    paths.some(
      (path) => path === name || path.startsWith(JSON.stringify(name)) || path.startsWith(`${name}.`),
    )
  const unpacked = extract.filter(({ into }) => isOf(into, wanted)).flatMap(({ from }) => from)
  const ofPosition = (name: string) => (isOf(name, wanted) || isOf(name, unpacked) ? 0 : 1)
  return collectedNamesOf(source)
    .toSorted((a, b) => ofPosition(a) - ofPosition(b))
    .flatMap((name) => {
      const found = form.exec(name)
      return found === null ? [] : [new Map(captures.map((one, at) => [one, [found[at + 1] ?? '']]))]
    })
}

/** Births and data of a device (with four levels) and of a node (with three). */
function sparkplugValues(pattern: string): Map<string, string[]>[] {
  const [, verb = '', rest = ''] = /\{(\w+)\}\/\{(\w+)#\}$/.exec(pattern) ?? []
  if (verb === '') return [new Map()]
  return [
    new Map([
      [verb, ['DBIRTH', 'DDATA']],
      [rest, ['node/device']],
    ]),
    new Map([
      [verb, ['NBIRTH', 'NDATA']],
      [rest, ['node']],
    ]),
  ]
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
