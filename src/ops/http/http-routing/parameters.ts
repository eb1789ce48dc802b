// parameters.ts: the kinds of parameters of a request, as zod schemas of the texts in its URL. Each kind
// carries the rule that a refusal shows, and what the OpenAPI document says of it, made of the same numbers
// and names. Those of an operation are the options and arguments of its command, too.

import { z } from 'zod'
import type { EpochMs } from '../../../std/clock.ts'
import { quote } from '../../../std/quote.ts'
import { formatDuration, parseDuration } from '../../../std/quantity.ts'
import { parseTimeArgument } from '../../../std/time-argument.ts'
import type { ParameterProblem } from '../json-answer.ts'

/** How a command takes a parameter. Without it: an option `--name <text>`. */
export type CommandForm = {
  /** Stands for the value in the help: `--device <name>`, or an argument `<id>`. */
  value?: string
  isArgument?: true
  /** Several values behind one name: `--id <id...>`. */
  isVariadic?: true
  /** The path has it, as `{key}`: no parameter of the URL. */
  isInPath?: true
  /** No command has it. */
  isHidden?: true
  /** A time; its answer says which one it was read as. */
  isTime?: true
  /** Of the option, where it has another name. */
  name?: string
  /** On the page, where the name says too little. */
  label?: string
  /** From what a person writes to the text of the parameter; or why it is wrong. */
  read?(text: string): { text: string } | { wrong: string }
}

/** What a schema of a parameter knows of itself. */
export type ParameterMeta = {
  description: string
  form: CommandForm
  /** `limit must be RULE, found "x".` */
  rule: string
  required: boolean
  allowed?: readonly string[]
  /** JSON Schema of the text or texts. */
  json: Readonly<Record<string, unknown>>
}

export const noParameters = z.strictObject({})

/** Of paths for probes and scrapers, which may add parameters of their own. */
export const anyParameters = z.object({})

const lengthMax = 4096
/** Of the values of one parameter. The length of a URL is bounded, too. */
const valuesMax = 1000

const metas = z.registry<ParameterMeta>()

function withMeta<Schema extends z.ZodType>(schema: Schema, meta: ParameterMeta): Schema {
  metas.add(schema, meta)
  return schema
}

/** Of a parameter that was made here. */
export function metaOf(schema: z.core.$ZodType | undefined): ParameterMeta {
  const meta = schema && metas.get(schema)
  if (meta === undefined) throw new Error('a parameter of a route is none of parameters.ts')
  return meta
}

const textRule = `a text of 1 to ${lengthMax} characters`
const textJson = { type: 'string', minLength: 1, maxLength: lengthMax }

export function text(description: string, form: CommandForm = {}) {
  const meta = { description, form, rule: textRule, required: false, json: textJson }
  return withMeta(z.string().min(1).max(lengthMax).optional(), meta)
}

export function requiredText(description: string, form: CommandForm = {}) {
  const meta = { description, form, rule: textRule, required: true, json: textJson }
  return withMeta(z.string().min(1).max(lengthMax), meta)
}

/** May be given more than once. */
export function texts(description: string, form: CommandForm = {}) {
  const json = { type: 'array', items: textJson }
  const meta = { description, form, rule: textRule, required: false, json }
  return withMeta(z.preprocess(asList, z.array(z.string().min(1).max(lengthMax)).max(valuesMax)), meta)
}

export function choice<const Name extends string>(
  description: string,
  allowed: readonly Name[],
  form: CommandForm = {},
) {
  const json = { type: 'string', enum: allowed }
  const meta = { description, form, rule: `one of ${allowed.join(', ')}`, required: false, allowed, json }
  return withMeta(z.enum(allowed).optional(), meta)
}

/** May be given more than once. */
export function choices<const Name extends string>(
  description: string,
  allowed: readonly Name[],
  form: CommandForm = {},
) {
  const json = { type: 'array', items: { type: 'string', enum: allowed } }
  const meta = { description, form, rule: `one of ${allowed.join(', ')}`, required: false, allowed, json }
  return withMeta(z.preprocess(asList, z.array(z.enum(allowed)).max(valuesMax)), meta)
}

export const flagValues = ['0', '1'] as const

/** False where it is absent. */
export function flag(description: string, form: CommandForm = {}) {
  const json = { type: 'string', enum: flagValues, default: '0' }
  const meta = { description, form, rule: '0 or 1', required: false, allowed: flagValues, json }
  return withMeta(
    z
      .enum(flagValues)
      .optional()
      .transform((value) => value === '1'),
    meta,
  )
}

function number({ min, max }: { min: number; max: number }) {
  return z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max))
}

type Range = { min: number; max: number }

export function integer(description: string, { min, max }: Range, form: CommandForm = {}) {
  const json = { type: 'integer', minimum: min, maximum: max }
  const meta = { description, form, rule: `a whole number from ${min} to ${max}`, required: false, json }
  return withMeta(number({ min, max }).optional(), meta)
}

export function requiredInteger(description: string, { min, max }: Range, form: CommandForm = {}) {
  const json = { type: 'integer', minimum: min, maximum: max }
  const meta = { description, form, rule: `a whole number from ${min} to ${max}`, required: true, json }
  return withMeta(number({ min, max }), meta)
}

export function limit(description: string, max = 1000, form: CommandForm = { value: 'count' }) {
  const json = { type: 'integer', minimum: 1, maximum: max, default: 100 }
  const meta = { description, form, rule: `a whole number from 1 to ${max}`, required: false, json }
  return withMeta(
    number({ min: 1, max })
      .optional()
      .transform((value) => value ?? 100),
    meta,
  )
}

const timeRule = 'a time such as 2026-11-21T14:03:20Z, 14:03 (today), 2h (ago), or milliseconds since 1970'

/** A time without a zone is one of the gateway, so who asks in another zone sends it as it is written. */
const timeForm = { value: 'time', isTime: true } as const

/** Epoch milliseconds. */
export function time(description: string, label?: string) {
  const parsed = z.string().transform((value, context) => {
    const found = parseTimeArgument(withPlus(value), Date.now())
    if (found.kind === 'invalid') context.addIssue(timeRule)
    return found.kind === 'time' ? found.at : z.NEVER
  })
  const form = { ...timeForm, ...(label !== undefined && { label }) }
  return withMeta(parsed.optional(), { form, rule: timeRule, required: false, json: textJson, description })
}

const ageMaxMs = 365 * 86_400_000

/** Milliseconds; on the command line a duration such as 30s. */
export function age(description: string, name: string) {
  const read = (text: string) => {
    const ms = parseDuration(text)
    const range = `0 ms to ${formatDuration(ageMaxMs)}`
    return ms !== undefined && ms <= ageMaxMs
      ? { text: String(ms) }
      : { wrong: `Give a duration with its unit, such as 30s or 5m, from ${range}.` }
  }
  return integer(description, { min: 0, max: 999_999_999_999_999 }, { value: 'duration', name, read })
}

/** `14:03 +02:00`: in a URL a plus is a space. */
function withPlus(value: string): string {
  return value.replace(/(T.*) (\d\d:\d\d)$/, '$1+$2')
}

function asList(value: unknown): unknown {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}

/** Texts by name; a name that is given twice has a list. */
export type RawParameters = Record<string, string | string[]>

/** Reads the part of a URL behind the question mark. */
export function rawParametersIn(query: string): RawParameters {
  const raw = Object.create(null) as RawParameters
  for (const [name, value] of new URLSearchParams(query)) {
    const before = raw[name]
    raw[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value]
  }
  return raw
}

export type ReadParameters =
  | { kind: 'values'; values: unknown }
  | { kind: 'invalid'; problems: readonly (ParameterProblem & { why: string })[] }

/** `now`: by which a time such as `2h` is read. */
export function readParameters(
  schema: z.ZodObject,
  raw: RawParameters,
  now: EpochMs = Date.now(),
): ReadParameters {
  const parsed = schema.safeParse(withTimes(schema, raw, now))
  if (parsed.success) return { kind: 'values', values: parsed.data }
  const problems = new Map<string, ParameterProblem & { why: string }>()
  for (const issue of parsed.error.issues) {
    const unknown = issue.code === 'unrecognized_keys'
    for (const name of unknown ? issue.keys : [String(issue.path[0])])
      if (!problems.has(name))
        problems.set(name, unknown ? unknownName(schema, name, raw) : problemOf(schema, name, raw))
  }
  return { kind: 'invalid', problems: [...problems.values()] }
}

function withTimes({ shape }: z.ZodObject, raw: RawParameters, now: EpochMs): RawParameters {
  const read = Object.assign(Object.create(null) as RawParameters, raw)
  for (const [name, value] of Object.entries(raw)) {
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (typeof value !== 'string' || !schema || metas.get(schema)?.form.isTime !== true) continue
    const found = parseTimeArgument(withPlus(value), now)
    if (found.kind === 'time') read[name] = String(found.at)
  }
  return read
}

function unknownName(schema: z.ZodObject, name: string, raw: RawParameters) {
  const allowed = Object.keys(schema.shape)
  const names = allowed.length === 0 ? 'The path takes none.' : `Use ${allowed.join(', ')}.`
  return {
    parameter: name,
    found: foundIn(raw[name]),
    why: `Unknown parameter ${quote(name, 40)}. ${names}`,
    allowed,
  }
}

function problemOf(schema: z.ZodObject, parameter: string, raw: RawParameters) {
  const { rule, allowed, json } = metaOf(schema.shape[parameter])
  const value = raw[parameter]
  const found = foundIn(value)
  const more = allowed === undefined ? {} : { allowed }
  if (value === undefined)
    return { parameter, found, why: `${parameter} is missing. It must be ${rule}.`, ...more }
  if (Array.isArray(value) && json['type'] !== 'array')
    return { parameter, found, why: `${parameter} is given more than once.`, ...more }
  return { parameter, found, why: `${parameter} must be ${rule}, found ${quote(found ?? '', 60)}.`, ...more }
}

function foundIn(value: string | string[] | undefined): string | null {
  if (value === undefined) return null
  return (Array.isArray(value) ? value.join(', ') : value).slice(0, 200)
}
