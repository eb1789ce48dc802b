// compile-state.ts: the options of a source that need memory: coalesce, thin, merge; and the profiles of
// `privacy`.

import type { Quantity } from '../plausibility/quantities.ts'
import type { PrivacyConfig, SourceConfig } from '../config.ts'
import { Malformed } from '../path/text-cursor.ts'
import { compileDeviceTemplate } from '../devices/device-rule.ts'
import { compilePaths } from '../path/path.ts'
import { expressionsIn, namesReadBy } from '../path/paths-used.ts'
import type { CompiledCoalesce, PositionRule } from '../state/coalesce.ts'
import { compilePrivacy, type Withhold } from '../privacy/privacy.ts'
import { compileSchedule } from '../privacy/schedule.ts'
import type { ThinRules } from '../filters/thin.ts'
import { compileTime, compileZone, zoneFor } from '../times/times.ts'
import { nameFrom } from '../path/value.ts'
import { compileCondition } from '../expression/expression.ts'
import { rawOf } from './compile-values.ts'
import type { Scope } from './compile-scope.ts'
import { checkProfile } from './useless-options.ts'
import type { Remember, SourcePlan } from './source-plan.ts'

/** Without `pair_within`. A value that was measured long before is sent with its own time. */
const pairedMs = 60_000
/** Likewise for the two halves of a position: a truck drives 25 m. */
const positionPairedMs = 1000

type Memory = Pick<SourcePlan, 'remember' | 'coalesce' | 'thin' | 'merge'>

/** Undefined where a problem was reported. */
export function compileMemory(source: SourceConfig, scope: Scope): Memory | undefined {
  if (source.coalesce) checkConditions(source, scope)
  const coalesce = scope.compile(['coalesce'], () => coalesceOf(source, scope.captures))
  const thin = scope.compile(['thin'], () => thinOf(source))
  const remember = scope.compile(['remember'], () => rememberOf(source, scope.captures))
  if (coalesce === undefined || thin === undefined || remember === undefined) return undefined
  return { remember, coalesce, thin, merge: source.merge ?? null }
}

function rememberOf({ remember, map }: SourceConfig, captures: readonly string[]): Remember | null {
  if (!remember) return null
  const { names, for: forMs } = remember
  const { in_motion: field } = map
  const isRead = [field?.path, field?.expr, field?.value].some((source) => source !== undefined)
  const motion = field && isRead ? rawOf(field, captures) : null
  return { names, forMs, motion }
}

function thinOf({ thin }: SourceConfig): ThinRules | null {
  if (!thin) return null
  if ([thin.every, thin.distance, thin.heading].every((rule) => rule === undefined) && !thin.signal)
    throw new Malformed('needs at least one of every, distance, heading, signal')
  return thin
}

type TimeOfValue = NonNullable<NonNullable<SourceConfig['coalesce']>['time']>

function coalesceOf(source: SourceConfig, captures: readonly string[]): CompiledCoalesce | null {
  const { coalesce } = source
  if (!coalesce) return null
  const { name, value, time, require = [], complete = [], latest = [], window, pair_within: pair } = coalesce
  const names = new Set(collectedNamesOf(source))
  if (names.size === 0) throw new Malformed('collects nothing: no path of the source reads a value')
  for (const wanted of [...require, ...complete, ...latest])
    if (!names.has(wanted)) throw new Malformed(`names ${wanted}, which is not in \`names\``)
  if (time?.format.includes('arrival'))
    throw new Malformed('has a time with the format arrival, which reads nothing')
  const rules = {
    require,
    complete,
    latest,
    windowMs: window,
    pairWithinMs: pair ?? Math.max(window, pairedMs),
    position: positionOf(source, pair ?? positionPairedMs),
  }
  return {
    rules,
    ...nameRule(name, captures),
    names,
    value: compilePaths(value),
    time: time ? timeOfValue(time) : null,
  }
}

/** Of values of which only the newest counts, the halves may well have two times. */
function positionOf({ map, coalesce }: SourceConfig, withinMs: number): PositionRule | null {
  const [lat, ...otherLats] = namesReadBy({ latitude: map.latitude })
  const [lon, ...otherLons] = namesReadBy({ longitude: map.longitude })
  if (lat === undefined || lon === undefined || lat === lon) return null
  const latest = new Set(coalesce?.latest)
  if (otherLats.length + otherLons.length > 0 || latest.has(lat) || latest.has(lon)) return null
  const halves = new Map([
    [lat, lon],
    [lon, lat],
  ])
  return { halves, withinMs }
}

function timeOfValue({ path, format, zone }: TimeOfValue): NonNullable<CompiledCoalesce['time']> {
  const rule = compileZone(format, zone)
  const read = compileTime(format, compilePaths(path))
  return (place, ofDevice) => read(place, zoneFor(rule, ofDevice))
}

function nameRule(
  name: NonNullable<SourceConfig['coalesce']>['name'],
  captures: readonly string[],
): Pick<CompiledCoalesce, 'name' | 'nameOfTopic'> {
  if (typeof name !== 'string') {
    const read = compilePaths(name.path)
    return { name: (place) => nameFrom(read(place)) ?? '', nameOfTopic: null }
  }
  const rule = compileDeviceTemplate(name, captures)
  if (rule.kind !== 'topic') throw new Malformed('must have a name that uses captures of the topic only')
  return { name: ({ captures: found }) => rule.name(found), nameOfTopic: rule.name }
}

/** A collected record came on several topics: its expressions have no captures. */
function checkConditions({ when, fix, extract, map }: SourceConfig, { captures, report }: Scope): void {
  for (const { text, at } of expressionsIn({ when, fix, extract, map }))
    if (namesCapture(text, captures))
      report(at, 'uses a capture of the topic, but collected values come on several topics.')
}

/** False where the condition is malformed, which is reported where it is compiled. */
function namesCapture(text: string, captures: readonly string[]): boolean {
  return isCondition(text, captures) && !isCondition(text, [])
}

function isCondition(text: string, captures: readonly string[]): boolean {
  try {
    compileCondition(text, captures)
    return true
  } catch (error) {
    if (error instanceof Malformed) return false
    throw error
  }
}

/** The names that a source collects; empty without `coalesce`. */
export function collectedNamesOf(source: SourceConfig): readonly string[] {
  const { coalesce } = source
  if (!coalesce) return []
  const { names, require = [], complete = [], latest = [] } = coalesce
  return names ?? [...namesIn(source), ...require, ...complete, ...latest]
}

/** The names of collected values that the source uses. */
function namesIn({ map, fix, when, extract }: SourceConfig): string[] {
  const made = new Set(extract.map(({ into }) => into))
  const packed = extract.map(({ from, when: only }) => ({ path: from, when: only }))
  return [...namesReadBy({ map, fix, when, packed })].filter((name) => !made.has(name))
}

export function compileProfiles(
  { profiles }: PrivacyConfig,
  sources: readonly SourceConfig[],
  { compile, at }: Scope,
): ReadonlyMap<string, Withhold> {
  const compiled = new Map<string, Withhold>()
  const quantities = new Map<string, Quantity[]>()
  for (const { map } of sources)
    for (const { type, quantity } of map.signals)
      if (quantity !== undefined && quantity !== 'none')
        quantities.set(type, [...(quantities.get(type) ?? []), quantity])
  for (const [name, profile] of Object.entries(profiles)) {
    const { round, hide, hours, zone, outside } = profile
    checkProfile(profile, at(name))
    const withhold = compile([name, 'hours'], () =>
      compilePrivacy(
        {
          round: round ?? null,
          hide,
          hours: hours === undefined ? null : compileSchedule(hours, zone),
          outside,
        },
        quantities,
      ),
    )
    if (withhold) compiled.set(name, withhold)
  }
  return compiled
}
