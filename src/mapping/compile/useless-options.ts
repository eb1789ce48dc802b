// useless-options.ts: finds options that the schema accepts and that have no effect, or whose only effect is
// dead letters. Without these checks a mistake of this kind stays unnoticed.

import { plural } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { PrivacyConfig, SourceConfig } from '../config.ts'
import { isStateful, isText } from '../encodings/encodings.ts'
import { namesReadBy, pathsReadBy } from '../path/paths-used.ts'
import { covers, type TopicPattern } from '../path/topic-pattern.ts'
import type { Scope } from './compile-scope.ts'

type Topics = Readonly<Record<'patterns' | 'exclude', readonly TopicPattern[]>>

export function checkUselessOptions(source: SourceConfig, topics: Topics, scope: Scope): void {
  checkFix(source, scope)
  checkRemembered(source, scope)
  checkCollected(source, scope)
  checkFamilies(source, scope)
  checkDevice(source, topics, scope)
  checkBody(source, scope)
}

/** Sources with one `merge.group`. `scope`: that of all sources. */
export function checkGroups(sources: readonly SourceConfig[], { report }: Scope): void {
  for (const [index, { name, merge, map }] of sources.entries()) {
    if (merge === undefined) continue
    const others = sources.filter((other) => other.name !== name && other.merge?.group === merge.group)
    if (others.length === 0)
      report(
        [index, 'merge'],
        'joins nothing: no other source has this group, and each payload waits for it.',
      )
    for (const key of Object.keys(map.fields)) {
      const other = others.find(({ map: { fields } }) =>
        Object.keys(fields).some((longer) => longer.startsWith(`${key}.`)),
      )
      if (other !== undefined)
        report(
          [index, 'map', 'fields', key],
          `is a value, and an object in the source ${quote(other.name, 64)} of the same group: only one can be sent.`,
        )
    }
  }
}

/** Of a profile that protects less than it seems to. */
export function checkProfile(
  { round, hide, hours, outside, zone }: PrivacyConfig['profiles'][string],
  { report }: Scope,
): void {
  if (hours !== undefined) return
  if (outside !== 'drop') report(['outside'], 'has no effect without `hours`: all hours are working hours.')
  else if (zone !== 'UTC') report(['zone'], 'has no effect without `hours`.')
  else if (round === undefined && hide.length === 0)
    report([], 'withholds nothing: it needs `round`, `hide` or `hours`.')
}

/** `fix: {}` beside a preset takes that of the preset away. */
function checkFix({ preset, fix, no_fix: noFix }: SourceConfig, { report }: Scope): void {
  if (fix === undefined) {
    if (noFix === 'keep') report(['no_fix'], 'has no effect without `fix`.')
    return
  }
  if (fix.time !== undefined) return
  if (fix.valid === undefined && preset === undefined)
    report(['fix'], 'has no effect: it needs `valid` or `time`.')
  else if (fix.old !== undefined)
    report(['fix', 'old'], 'has no effect without `fix.time`: no position is known to be old.')
}

/** Binary messages have no charset, and those of Sparkplug say themselves how they are compressed. */
function checkBody({ encoding, charset, compression }: SourceConfig, { report }: Scope): void {
  if (charset !== undefined && !isText(encoding))
    report(['charset'], `has no effect: the encoding ${encoding} is no text.`)
  if (compression !== undefined && isStateful(encoding))
    report(
      ['compression'],
      `has no effect: messages of the encoding ${encoding} say themselves how they are compressed.`,
    )
}

/** Only values that stand at the top of a record are remembered, for those who read them. */
function checkRemembered({ remember, fix, map }: SourceConfig, { report }: Scope): void {
  const read = namesReadBy({ valid: fix?.valid, in_motion: map.in_motion })
  for (const [index, name] of (remember?.names ?? []).entries()) {
    if (read.has(name)) continue
    const list = read.size === 0 ? 'they read nothing' : `they read ${[...read].join(', ')}`
    report(
      ['remember', 'names', index],
      `names ${quote(name, 64)}, which neither \`fix.valid\` nor \`in_motion\` reads from the top of a record; ${list}.`,
    )
  }
}

/** What reads a value that is not collected never sees it. */
function checkCollected(
  { preset, coalesce, extract, when, refuse, fix, map }: SourceConfig,
  { report }: Scope,
): void {
  if (coalesce?.names === undefined) return
  const names = new Set([...coalesce.names, ...extract.map(({ into }) => into)])
  const conditions = [
    { keys: ['when'], when },
    ...refuse.map((one, index) => ({ keys: ['refuse', index], ...one })),
  ]
  for (const { keys, when: text } of conditions) {
    const missing = [...namesReadBy({ when: text })].filter((name) => !names.has(name))
    if (missing.length === 0) continue
    const what = `${plural(missing.length, 'value')} that \`coalesce.names\` does not have: ${missing.join(', ')}`
    report(keys, `reads ${what}. It is checked when the values are collected.`)
  }
  // Of the values of a preset, `names` chooses some.
  if (preset !== undefined) return
  for (const { path, at } of pathsReadBy({ fix, map })) {
    const [first] = path.steps
    if (path.from === 'up' || first?.kind !== 'key' || first.key.startsWith('$') || names.has(first.key))
      continue
    report(at, `reads ${first.key}, which \`coalesce.names\` does not have.`)
  }
}

function checkFamilies({ families }: SourceConfig, { report }: Scope): void {
  for (const [family, models] of Object.entries(families))
    for (const [index, model] of models.entries()) {
      const star = model.indexOf('*')
      if (star === -1 || star === model.length - 1) continue
      report(
        ['families', family, index],
        `has a * that is not at the end, in ${quote(model, 64)}: only ${quote(`${model.slice(0, star)}*`, 64)} has a meaning.`,
      )
    }
}

/** Where every name of the device needs a level that a topic does not have, its messages are dead letters. */
function checkDevice(
  { device = '{device}' }: SourceConfig,
  { patterns, exclude }: Topics,
  { captures, report }: Scope,
): void {
  const rules = Array.isArray(device) ? device : [device]
  const needed = rules.map((rule) => (typeof rule === 'string' ? levelsOf(rule, captures) : []))
  for (const [index, pattern] of patterns.entries()) {
    if (exclude.some((excluded) => covers(excluded, pattern))) continue
    const lacking = needed.map((levels) => levels.find((level) => !pattern.captures.includes(level)))
    const [first] = lacking
    if (first === undefined || lacking.includes(undefined)) continue
    const keys = patterns.length === 1 ? ['topic'] : ['topic', index]
    report(keys, `has no {${first}}, so no message of it would name a device.`)
  }
}

/** The levels of topics that a template needs. */
function levelsOf(template: string, captures: readonly string[]): string[] {
  return captures.filter((capture) => template.includes(`{${capture}}`))
}
