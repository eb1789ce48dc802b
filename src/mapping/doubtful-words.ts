// doubtful-words.ts: words of a valid config that are free, but look like mistakes: a signal type that is
// nearly a known one, a model that the source does not know. `check` and the start warn of them.

import { nearest } from '../std/nearest-word.ts'
import { plural } from '../std/quantity.ts'
import { quote } from '../std/quote.ts'
import type { MappingConfig, SourceConfig } from './config.ts'
import { compileFamilies, knownTypes } from './compile/compile-signals.ts'
import { quantities, quantityOf, wordsOf as wordsIn } from './plausibility/quantities.ts'
import { plainKey } from './fields/field-names.ts'
import { pathTextsIn } from './path/paths-used.ts'

export type DoubtfulWord = { what: string; act: string }

/** The models in the device table, with the number of their devices. */
export type TableModels = ReadonlyMap<string, number>

/** By option: the known words of the interface (ingestion-api.md 2), and other names of the same. */
const interfaceWords: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  type: {
    OBD_LIFETIME_ODOMETER: 'odometer obdodometer lifetimeodometer totalodometer vehicleodometer',
    OBD_TOTAL_ENGINE_TIME: 'enginehours obdenginehours totalenginehours enginetime obdenginetime',
  },
  value_unit: { KILOMETERS: 'km kilometer kilometre kilometres', HOURS: 'h hour hrs' },
  part: { ENGINE: 'motor engines' },
  asset_type: { TRACTOR: 'truck tractors' },
}

/** `table`: null where there is one that was not read. */
export function doubtfulWords(config: MappingConfig, table: TableModels | null): DoubtfulWord[] {
  const ofSource = [wordsOf, expressionWords, assumedUnits, unjudgedBatteries]
  return [
    ...interfaceWord('asset_type', config.defaults.asset_type, 'defaults'),
    ...ofSource.flatMap((doubtsOf) => config.sources.flatMap(doubtsOf)),
    ...modelsOf(config, table),
  ]
}

/** What a path has in the place of a word that only expressions know. `rest`: what stands behind it. */
const pathForms: Readonly<Record<string, (rest: string) => string>> = {
  record: (rest) => `In a path the record has no name: write \`${rest}\`.`,
  message: (rest) => `In a path the whole message is \`$\`: write \`$.${rest}\`.`,
  outer: (rest) => `In a path the record one level out is \`$up\`: write \`$up.${rest}\`.`,
  packet: (rest) =>
    rest.startsWith('user.')
      ? `In a path user properties are \`$properties\`: write \`$properties.${rest.slice('user.'.length)}\`.`
      : `In a path the packet is \`$packet\`: write \`$packet.${rest}\`.`,
  topic: (rest) => `Only an expression reads the topic: write \`expr: topic.${rest}\`.`,
  previous: (rest) => `Only an expression reads the record before: write \`expr: previous.${rest}\`.`,
}

/** A message may have keys of these names, so they are no error. */
function expressionWords({ name, map, fix, each, extract, device, coalesce }: SourceConfig): DoubtfulWord[] {
  return pathTextsIn({ map, fix, each, extract, device, coalesce }).flatMap(({ text, at }) => {
    const [, word = '', rest = ''] = /^([a-z]+)\.(.+)$/.exec(text) ?? []
    if (!Object.hasOwn(pathForms, word)) return []
    return [
      {
        what: `the source ${quote(name, 64)} has the path ${quote(text, 80)} in ${at.join('.')}, which is a key named ${word}.`,
        act: `${pathForms[word]?.(rest)} If the message has such a key, write \`"${word}".${rest}\`.`,
      },
    ]
  })
}

/** Values without a unit are sent as if they had the unit of the interface. A preset states its units. */
function assumedUnits({ name, preset, map }: SourceConfig): DoubtfulWord[] {
  if (preset !== undefined) return []
  const where = `the source ${quote(name, 64)} maps`
  return [
    ...(isBare(map.speed) ? [assumed(`${where} speed`, 'km/h', 'm/s, mph, knots')] : []),
    ...map.signals.flatMap((signal) => {
      const { type, value_unit, quantity = 'none' } = signal
      if (!isBare(signal) || value_unit !== undefined) return []
      const known = knownTypes.get(type)
      if (known === 'KILOMETERS') return [assumed(`${where} ${type}`, 'km', 'm, mi')]
      if (known !== undefined) return [assumed(`${where} ${type}`, 'h', 'min, s')]
      if (quantity === 'none') return []
      return [
        {
          what: `${where} ${type} without \`value_unit\`. Its bounds take it as ${quantities[quantity].unit}.`,
          act: 'Set `value_unit` to the unit that the device sends.',
        },
      ]
    }),
  ]
}

/** Of a battery the name tells neither percent nor volts. Who names values that mean none has seen them. */
function unjudgedBatteries({ name, preset, map }: SourceConfig): DoubtfulWord[] {
  if (preset !== undefined) return []
  const fields = [
    ...Object.entries(map.fields).flatMap(([field, one]) => (one.type === 'number' ? { field, ...one } : [])),
    ...map.signals.map((one) => ({ field: one.type, ...one })),
  ]
  return fields.flatMap((one) => {
    const unit = 'value_unit' in one ? one.value_unit : undefined
    const isKnown = one.quantity !== undefined || one.absent !== undefined || unit !== undefined
    if (isKnown || !isBare(one) || !wordsIn(one.field).some((word) => word === 'BATTERY')) return []
    if (quantityOf(one.field, undefined) !== null) return []
    return [
      {
        what: `the source ${quote(name, 64)} maps ${one.field}, and nothing tells its unit, so no bounds apply: the 255 of a byte without a value would be sent.`,
        act: 'Set `quantity: battery` for percent, `quantity: voltage` for volts, or `quantity: none`; and `absent: [255]` where the device sends it.',
      },
    ]
  })
}

function assumed(where: string, unit: string, others: string): DoubtfulWord {
  return {
    what: `${where} without \`unit\`. It is sent as it is, as ${unit}.`,
    act: `Set \`unit: ${unit}\`, or the unit that the device sends (${others}).`,
  }
}

/** A number of the message, taken as it is. Who sets a scale has thought of the unit. */
function isBare(field: { path?: unknown; unit?: unknown; scale?: number } | undefined): boolean {
  return field?.path !== undefined && field.unit === undefined && (field.scale ?? 1) === 1
}

function wordsOf({ name, map, defaults }: SourceConfig): DoubtfulWord[] {
  const where = `the source ${quote(name, 64)}`
  return [
    ...interfaceWord('asset_type', defaults.asset_type, where),
    ...map.signals.flatMap(({ type, value_unit, part }) => [
      ...interfaceWord('type', type, where),
      ...interfaceWord('value_unit', value_unit, where),
      ...interfaceWord('part', part, where),
    ]),
  ]
}

/** Other words are sent as they are: the interface may know more than these. */
function interfaceWord(option: string, word: string | undefined, where: string): DoubtfulWord[] {
  const known = Object.entries(interfaceWords[option] ?? {})
  if (word === undefined || known.some(([one]) => one === word)) return []
  const [meant] = known.find(([one, others]) => isMeant(word, one, others.split(' '))) ?? []
  if (meant === undefined) return []
  return [
    {
      what: `${where} has the ${option} ${quote(word, 100)}, which is sent as it is. Did you mean "${meant}"?`,
      act: 'Correct the word, unless the service knows it.',
    },
  ]
}

/** A longer word of its own, as `ENGINE_2`, is meant so. */
function isMeant(word: string, known: string, others: readonly string[]): boolean {
  const plain = plainKey(word)
  if (plain === plainKey(known) || others.includes(plain)) return true
  if (word.startsWith(`${known}_`) || word.length < 4) return false
  // Of a long word two letters more or less are a mistake; a third of them would be another word.
  return Math.abs(word.length - known.length) <= 2 && nearest(word, [known]) !== undefined
}

/** Models count only where a source has families: elsewhere a model is only sent. */
function modelsOf({ sources, defaults }: MappingConfig, table: TableModels | null): DoubtfulWord[] {
  const found: DoubtfulWord[] = []
  const ofFamilies = sources.filter(({ families }) => Object.keys(families).length > 0)
  for (const source of ofFamilies) {
    const model = source.model ?? source.defaults.model ?? defaults.model
    const where = `the source ${quote(source.name, 64)}`
    if (model !== undefined) found.push(...modelOf(model, [source], where))
    else if (table?.size === 0)
      found.push({
        what:
          `${where} has no \`model\`, and no device in the device table has one. ` +
          `Without it this is not sent: ${source.warn_without_model ?? 'values that depend on the model'}.`,
        act: 'Set `model` of the source, or the column `model` of the device table.',
      })
  }
  if (ofFamilies.length > 0)
    for (const [model, count] of [...(table ?? [])].slice(0, tableModelsMax))
      found.push(...modelOf(model, ofFamilies, `the device table, for ${plural(count, 'device')},`))
  return found
}

/** Models of the device table that are judged: a table of invented ones must not flood the log. */
const tableModelsMax = 200

function modelOf(model: string, sources: readonly SourceConfig[], where: string): DoubtfulWord[] {
  if (sources.some((source) => isKnown(model, source))) return []
  const known = [...new Set(sources.flatMap(({ models, families }) => [...models, ...exactNames(families)]))]
  const meant = nearestModel(model, known)
  const help = meant === undefined ? '' : ` Did you mean "${meant}"?`
  const [family] = sources.map((source) => familyOf(model, source)).filter((name) => name !== null)
  const effect =
    family === undefined
      ? 'It belongs to no family, so values that depend on the model are omitted.'
      : `It is read as one of the family ${family}.`
  return [
    {
      what: `${where} has the model ${quote(model, 100)}, which is not a known one. ${effect}${help}`,
      act: 'Correct the model, or leave it if it is newer than this version.',
    },
  ]
}

/** A longer name, with the variant behind the model, is known as well: `FMC650-QJAA0`. */
function isKnown(model: string, source: SourceConfig): boolean {
  if (familyOf(model, source) === null) return false
  const name = model.toUpperCase()
  const isNamed = (known: string) => name.startsWith(known.toUpperCase())
  return source.models.length === 0 || [...source.models, ...exactNames(source.families)].some(isNamed)
}

function familyOf(model: string, { families }: SourceConfig): string | null {
  return Object.keys(families)[compileFamilies(families)(model) - 1] ?? null
}

function exactNames(families: SourceConfig['families']): string[] {
  return Object.values(families)
    .flat()
    .filter((pattern) => !pattern.endsWith('*'))
}

/** Of several that are as near, the one that begins in the same way for longest. */
function nearestModel(model: string, known: readonly string[]): string | undefined {
  const name = model.toUpperCase()
  const longer = known.filter((one) => name.length >= 4 && one.toUpperCase().startsWith(name))
  return longer[0] ?? nearest(model, known)
}
