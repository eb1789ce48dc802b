// schema-shape.ts: the JSON Schema of the config, made from the zod schema, and look-ups of single options in
// it. Error texts, the reference and the published schema all use it, so they agree.

import { z } from 'zod'
import { formatDuration, formatSize, parseDuration, parseSize } from '../std/quantity.ts'
import type { Keys } from './yaml-source.ts'

export type Shape = {
  type?: string
  format?: string
  description?: string
  default?: unknown
  examples?: readonly unknown[]
  const?: unknown
  enum?: readonly unknown[]
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  properties?: Record<string, Shape>
  required?: readonly string[]
  items?: Shape
  additionalProperties?: Shape | boolean
  anyOf?: readonly Shape[]
  oneOf?: readonly Shape[]
  allOf?: readonly Shape[]
  $ref?: string
  $defs?: Record<string, Shape>
}

/** Each takes some 30 ms to make, and errors of a config look into it. */
const shapes = new WeakMap<z.ZodType, Shape>()

/** The input of the schema: what may be written, before defaults and units are applied. Not to be changed. */
export function shapeOf(schema: z.ZodType): Shape {
  let shape = shapes.get(schema)
  if (shape === undefined) {
    shape = makeShape(schema)
    shapes.set(schema, shape)
  }
  return shape
}

function makeShape(schema: z.ZodType): Shape {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      const { def } = zodSchema._zod
      // The schema has a default in milliseconds or bytes. It is shown as it would be written.
      if (def.type === 'default') jsonSchema.default = writtenAs(def.defaultValue, jsonSchema.format)
      if (jsonSchema.properties?.[presetKey]) requireUnlessPreset(jsonSchema)
    },
  }) as Shape
}

/** The option that supplies missing options: presets are merged in before the schema check. */
const presetKey = 'preset'

/** All options but the name are required only without a preset. */
function requireUnlessPreset(shape: z.core.JSONSchema.BaseSchema): void {
  const required = shape.required?.filter((name) => name !== 'name') ?? []
  if (required.length === 0) return
  shape.required = shape.required?.filter((name) => !required.includes(name)) ?? []
  shape.anyOf = [{ required: [presetKey] }, { required }]
}

/** Whether an option is required, as text for the reference; empty where it is not. */
export function requirednessOf({ required, properties, anyOf }: Shape, name: string): string {
  if (required?.includes(name)) return 'required'
  const unlessPreset = properties?.[presetKey] && anyOf?.some((one) => one.required?.includes(name))
  return unlessPreset && name !== presetKey ? `required without \`${presetKey}\`` : ''
}

function writtenAs(value: unknown, format: string | undefined): unknown {
  if (typeof value !== 'number') return value
  if (format === 'duration') return writtenDuration(value)
  if (format === 'size') return writtenSize(value)
  return value
}

function writtenDuration(durationMs: number): string {
  const text = formatDuration(durationMs).replace(' min', 'm').replace(' ', '')
  return parseDuration(text) === durationMs ? text : `${durationMs}ms`
}

function writtenSize(bytes: number): string {
  const text = formatSize(bytes).replace('.0 ', '').replace(' ', '')
  return parseSize(text) === bytes ? text : `${bytes}B`
}

/** The alternatives for the value at a path, without their wrappers; empty where no option has this path. */
export function shapesAt(root: Shape, keys: Keys): readonly Shape[] {
  let shapes = alternatives(root, root)
  for (const key of keys) shapes = shapesBelow(root, shapes, key)
  return shapes
}

/** What the alternatives `shapes` have below a key. */
export function shapesBelow(root: Shape, shapes: readonly Shape[], key: string | number): readonly Shape[] {
  return shapes.flatMap((shape) => childrenOf(root, shape, key))
}

/** The description of a path: its own, or that of its wrapper. */
export function descriptionAt(root: Shape, keys: Keys): string | undefined {
  let shapes: readonly Shape[] = [root]
  for (const key of keys) {
    shapes = shapes
      .flatMap((shape) => alternatives(root, shape))
      .map((shape) => childOf(shape, key))
      .filter((shape) => shape !== undefined)
  }
  const described = [...shapes, ...shapes.map((shape) => resolved(root, shape))]
  return described.find(({ description }) => description !== undefined)?.description
}

function childrenOf(root: Shape, shape: Shape, key: string | number): readonly Shape[] {
  const child = childOf(shape, key)
  return child ? alternatives(root, child) : []
}

function childOf(shape: Shape, key: string | number): Shape | undefined {
  if (typeof key === 'number') return shape.items
  if (shape.properties && Object.hasOwn(shape.properties, key)) return shape.properties[key]
  return typeof shape.additionalProperties === 'object' ? shape.additionalProperties : undefined
}

/** The members of a union, flattened; a shape that is no union is its own only member. */
export function alternatives(root: Shape, shape: Shape, depth = 0): readonly Shape[] {
  const plain = resolved(root, shape)
  // Beside `properties`, `anyOf` only names the required ones.
  const members = plain.properties ? undefined : (plain.anyOf ?? plain.oneOf ?? plain.allOf)
  // A schema that refers to itself never ends. No option is nested this deep.
  if (!members || depth > 8) return [plain]
  return members.flatMap((member) => alternatives(root, member, depth + 1))
}

function resolved(root: Shape, shape: Shape): Shape {
  const name = shape.$ref?.replace('#/$defs/', '')
  if (shape.$ref === '#') return root
  return (name === undefined ? undefined : root.$defs?.[name]) ?? shape
}

/** The type of an option for the reference: `whole number 1 to 64`. */
export function typeOf(shape: Shape): string {
  if (shape.const !== undefined) return `\`${shape.const as string}\``
  if (shape.enum) return shape.enum.map((word) => `\`${word as string}\``).join(' or ')
  if (shape.type === 'integer' || shape.type === 'number') {
    const range = rangeOf(shape, '')
    return `${shape.type === 'integer' ? 'whole number' : 'number'}${range === '' ? '' : `, ${range}`}`
  }
  if (shape.type === 'string' && shape.format && /^ur[il]$/.test(shape.format)) return 'URL'
  if (shape.format?.startsWith('pem') === true) return 'path or PEM text'
  if (shape.type === 'string' && shape.format) return shape.format === 'secret' ? 'secret' : shape.format
  return (
    { string: 'text', number: 'number', boolean: 'true or false', array: 'list', object: 'map' }[
      shape.type ?? ''
    ] ?? 'any'
  )
}

/** The rule for a value, as the end of a sentence: `must be 1 to 64`. */
export function ruleOf(shapes: readonly Shape[]): string {
  // Of several kinds of bridges, each has its URL.
  const urls = shapes.filter(isUrl)
  const others = shapes.filter((shape) => !isUrl(shape) && !(urls.length > 0 && shape.type === 'string'))
  const [first] = urls
  const merged =
    first === undefined ? [] : [{ ...first, examples: urls.flatMap(({ examples = [] }) => examples) }]
  const rules = [...new Set([...merged, ...others].map(ruleOfOne))]
  return `must be ${rules.join(' or ')}`
}

function isUrl({ type, format }: Shape): boolean {
  return type === 'string' && (format === 'uri' || format === 'url')
}

/** More words are no help in a sentence. */
const wordsShownMax = 24

function wordsText(words: readonly unknown[]): string {
  const shown = words.slice(0, words.length > wordsShownMax ? 5 : wordsShownMax).map(String)
  const more =
    words.length > shown.length ? `, ... (${words.length} words, config/reference.md lists them)` : ''
  return `${shown.join(', ')}${more}`
}

function ruleOfOne(shape: Shape): string {
  if (shape.const !== undefined) return JSON.stringify(shape.const)
  if (shape.enum) return `one of ${wordsText(shape.enum)}`
  switch (shape.type) {
    case 'integer':
      return rangeOf(shape, 'a whole number')
    case 'number':
      return rangeOf(shape, 'a number')
    case 'boolean':
      return 'true or false'
    case 'string':
      return textRuleOf(shape)
    case 'array':
      return listRuleOf(shape)
    case 'object':
      return 'a map'
    case undefined:
    default:
      return 'of another type'
  }
}

function listRuleOf({ minItems, maxItems, items }: Shape): string {
  const example = items?.enum ?? items?.examples
  const form = example?.length ? ` such as [${example.slice(0, 2).map(String).join(', ')}]` : ''
  const words = items?.enum ? ` of words of ${wordsText(items.enum)}` : ''
  if (maxItems !== undefined) return `a list of ${minItems ?? 0} to ${maxItems} entries${form}`
  if (!minItems) return `a list${words}${form}`
  if (words !== '') return `a list with at least ${minItems} of ${wordsText(items?.enum ?? [])}${form}`
  return `a list of at least ${minItems} ${minItems === 1 ? 'entry' : 'entries'}${form}`
}

function textRuleOf({ format, examples, minLength, maxLength }: Shape): string {
  const example = examples?.length ? ` such as ${examples.map(String).join(' or ')}` : ''
  if (format === 'duration') return `a duration${example}`
  if (format === 'size') return `a size${example}`
  if (format?.startsWith('pem') === true) return 'the path of a PEM file'
  if (format === 'path') return `a path${example}`
  if (format === 'host:port') return `HOST:PORT${example}`
  if (format === 'uri' || format === 'url') return `a URL${example}`
  const length = maxLength === undefined ? '' : ` of at most ${maxLength} characters`
  const form = format === undefined ? '' : ` of the form ${format}`
  return `${minLength ? 'non-empty text' : 'text'}${length}${form}${example}`
}

function rangeOf(shape: Shape, otherwise: string): string {
  const bounded = (value: number | undefined) =>
    value !== undefined && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined
  const minimum = bounded(shape.minimum)
  const maximum = bounded(shape.maximum)
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`
  if (minimum !== undefined) return `at least ${minimum}`
  if (maximum !== undefined) return `at most ${maximum}`
  if (shape.exclusiveMinimum !== undefined) return `above ${shape.exclusiveMinimum}`
  return otherwise
}
