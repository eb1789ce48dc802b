// operation-command.ts: the command of an operation, made of its row in src/ops/operations: arguments and
// options are its parameters, the request is sent to the running daemon, and the answer is printed with its
// text. Where no daemon runs, some commands find the same answer in its spool.

import { Command, InvalidArgumentError, Option } from 'commander'
import { zonedTime, type EpochMs } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import {
  effects,
  needsYes,
  linesOfBlocks,
  metaOf,
  nowOf,
  operationNamed,
  operations,
  readParameters,
  type Operation,
  type RawParameters,
} from '../ops/ops.ts'
import {
  changeRequest,
  requestByOptions,
  withDaemonOptions,
  type DaemonOptions,
} from './daemon-client/daemon-options.ts'
import {
  isUnreachable,
  requestOrOpen,
  withSpoolOptions,
  type SpoolOptions,
} from './daemon-client/spool-access.ts'
import { printAnswer, type BuildCommand, type CommandIo, type ExitStatus } from './terminal/terminal.ts'
import { listsByDefault, notes } from './terminal/text-format.ts'
import { textOfLines } from '../std/text-table/text-lines.ts'

/** The answer that a spool without a daemon gives. `path`: its directory. */
export type AtRest = (path: string, values: unknown, io: CommandIo) => Promise<unknown>

type Done = (status: ExitStatus) => void

export type CommandMore = {
  atRest?: AtRest
  /** Where no daemon answers: the answer by the file of --config. */
  byConfig?(config: string, values: unknown, io: CommandIo): Promise<unknown>
  /** Parameters that the command always gives. */
  always?: Readonly<Record<string, string>>
  /** Printed below the answer; `width`: of the terminal. */
  textBelow?(answer: never, width: number): string
  /** More options; and where one of them is given, what the command does in the place of the request. */
  extend?(command: Command): Command
  instead?(options: never, given: GivenParameters, io: CommandIo): Promise<ExitStatus> | null
}

/** `reload`, or `retry` of `batches retry`. */
export function operationCommand(name: string, io: CommandIo, done: Done, more: CommandMore = {}): Command {
  const operation = operationNamed(name)
  const { atRest, extend = (made: Command) => made, always = {}, textBelow } = more
  const bare = new Command(name.split('/').at(-1)).description(operation.summary)
  const command = extend(withParameters(atRest ? withSpoolOptions(bare) : withDaemonOptions(bare), operation))
  return command
    .addHelpText('after', operation.notes === undefined ? '' : notes(...operation.notes))
    .action(async () => {
      const options = command.opts<DaemonOptions>()
      const given = parametersOf(command, operation)
      for (const [one, value] of Object.entries(always)) given.params.set(one, value)
      const other = more.instead?.(options as never, given, io) ?? null
      if (other !== null) return done(await other)
      checked(operation, given)
      const answer = await answerOf(operation, { given, options, io }, more)
      // Again: now the zone of the gateway is known.
      const { values } = checked(operation, given)
      printOperation(operation, answer, { values, options, io, ...(textBelow && { textBelow }) })
      return done(operation.isDone?.(answer, values) === false ? 1 : 0)
    })
}

type Asked = { given: GivenParameters; options: DaemonOptions; io: CommandIo }

async function answerOf(operation: Operation, asked: Asked, { atRest, byConfig }: CommandMore) {
  const { given, options, io } = asked
  const request = requestOf(operation, given.params)
  const values = () => checked(operation, given).values
  if (atRest !== undefined)
    return requestOrOpen(options as SpoolOptions, io, request, (path) => atRest(path, values(), io))
  try {
    return await requestByOptions(options, io, request)
  } catch (error) {
    if (byConfig === undefined || options.config === undefined || !isUnreachable(error)) throw error
    return byConfig(options.config, values(), io)
  }
}

/** `batches` with all its operations, and with commands that have files of their own. */
export function groupCommand(
  group: string,
  own: Readonly<Record<string, BuildCommand>> = {},
  more: Readonly<Record<string, CommandMore>> = {},
): BuildCommand {
  return (io, done) => {
    const command = new Command(group)
    const rows = operations.filter(({ name, text }) => name.startsWith(`${group}/`) && text !== undefined)
    const names = rows.map(({ name }) => name.split('/')[1] ?? '')
    for (const name of [...names, ...Object.keys(own)].filter((one, at, all) => all.indexOf(one) === at)) {
      const build = own[name]
      const made = build?.(io, done) ?? operationCommand(`${group}/${name}`, io, done, more[name])
      command.addCommand(made, { isDefault: name === 'list' })
    }
    return names.includes('list') ? command.addHelpText('after', listsByDefault(group)) : command
  }
}

/** The parameters as arguments and options. */
export function withParameters(command: Command, { parameters, prints = {} }: Operation): Command {
  for (const [name, schema] of Object.entries(parameters.shape)) {
    const { form, required, description } = metaOf(schema)
    const { value = 'text', isArgument, isHidden } = form
    if (isHidden) continue
    const said = description.charAt(0).toLowerCase() + description.slice(1).replace(/\.$/, '')
    if (isArgument) {
      const word = isList(schema) ? `[${value}...]` : required ? `<${value}>` : `[${value}]`
      command.argument(word, said)
    } else command.addOption(optionOf(name, schema, said))
  }
  for (const [name, said] of Object.entries(prints)) command.option(`--${name}`, said)
  return command
}

type Parameter = Operation['parameters']['shape'][string]

function isList(schema: Parameter): boolean {
  return metaOf(schema).json['type'] === 'array'
}

function isFlag(schema: Parameter): boolean {
  return metaOf(schema).json['default'] === '0'
}

function optionName(name: string, schema: Parameter): string {
  return metaOf(schema).form.name ?? name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

function optionOf(name: string, schema: Parameter, said: string): Option {
  const { form, required, allowed, rule, json } = metaOf(schema)
  const { value = 'text', isVariadic, read } = form
  const words = `--${optionName(name, schema)}`
  if (isFlag(schema)) return new Option(words, said)
  const standard = json['default'] === undefined ? '' : ` (default: ${JSON.stringify(json['default'])})`
  const names = allowed === undefined ? '' : `: ${allowed.join(', ')}`
  const option = new Option(
    `${words} <${value}${isVariadic ? '...' : ''}>`,
    `${said}${names}${standard}${required ? ' (required)' : ''}`,
  )
  option.makeOptionMandatory(required)
  return option.argParser((text: string, before: string | string[] | undefined) => {
    const parsed = read?.(text) ?? { text }
    if ('wrong' in parsed) throw new InvalidArgumentError(parsed.wrong)
    const list = isList(schema)
    if (!schema.safeParse(list ? [parsed.text] : parsed.text).success)
      throw new InvalidArgumentError(`Give ${rule}.`)
    if (list) return [...((before as string[] | undefined) ?? []), parsed.text]
    if (before !== undefined) throw new InvalidArgumentError('Give the option once.')
    return parsed.text
  })
}

export type GivenParameters = { raw: RawParameters; params: URLSearchParams }

/** What the command line gives, as the parameters of the request. */
export function parametersOf(command: Command, { parameters }: Operation): GivenParameters {
  const options = command.opts<Record<string, unknown>>()
  const words = [...command.processedArgs] as (string | string[] | undefined)[]
  const raw: RawParameters = {}
  const params = new URLSearchParams()
  for (const [name, schema] of Object.entries(parameters.shape)) {
    const { form } = metaOf(schema)
    if (form.isHidden) continue
    const key = optionName(name, schema).replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const found = form.isArgument ? words.shift() : options[key]
    if (found === undefined || found === false || (Array.isArray(found) && found.length === 0)) continue
    const texts = (Array.isArray(found) ? found : [found === true ? '1' : found]) as string[]
    raw[name] = isList(schema) ? texts : (texts[0] ?? '')
    for (const text of texts) params.append(name, text)
  }
  return { raw, params }
}

/** The values; or USAGE, before a daemon is asked. */
export function checked(operation: Operation, { raw }: Pick<GivenParameters, 'raw'>): { values: unknown } {
  const read = readParameters(operation.parameters, raw)
  if (read.kind === 'invalid')
    throw new GatewayError('USAGE', {
      what: 'The command line is wrong.',
      why: read.problems.map(({ why }) => why).join(' '),
      act: 'Run it with --help to see its usage.',
    })
  const refused = operation.refuses?.(read.values) ?? null
  if (refused !== null) throw new GatewayError('USAGE', refused)
  return { values: read.values }
}

export function requestOf({ name, path }: Operation, params: URLSearchParams) {
  if (path === undefined) return changeRequest(name, params)
  const query = new URLSearchParams(params)
  const key = encodeURIComponent(query.get('key') ?? '')
  if (path.includes('{key}')) query.delete('key')
  return {
    path: `${path.replace('{key}', key)}?${query.toString()}`,
    method: 'GET',
    timeoutMs: Infinity,
  } as const
}

/** A report of a change that was not made says so, and how to make it. */
export function printOperation(
  operation: Operation,
  answer: unknown,
  {
    values,
    options,
    io,
    textBelow = () => '',
  }: { values: unknown; options: DaemonOptions; io: CommandIo } & Pick<CommandMore, 'textBelow'>,
): void {
  const { dryRun = false } = Object(answer) as { dryRun?: boolean }
  const prints = new Set(Object.keys(operation.prints ?? {}).filter((name) => name in options))
  const asks = needsYes(operation)
  printAnswer(io, options, answer, (_, width) => {
    const lines = [
      ...timesLine(operation, values),
      ...linesOfBlocks(operation.text?.(answer, { now: nowOf(answer), values, prints }) ?? [], width),
      ...(dryRun && effects[operation.effect].isRecorded
        ? [`Nothing was changed.${asks ? ' Add --yes to do it.' : ''}`]
        : []),
    ]
    return textOfLines(lines) + textBelow(answer as never, width)
  })
}

/** As which times those that were given were read: they are of the zone of the gateway. */
export function timesLine({ parameters }: Operation, values: unknown): string[] {
  const read = Object.entries(values as Record<string, unknown>).filter(
    ([name, value]) => value !== undefined && metaOf(parameters.shape[name]).form.isTime,
  )
  const times = read.map(([name, at]) => `${name} ${zonedTime(at as EpochMs)}`)
  return times.length === 0 ? [] : [`Only ${times.join(', ')}.`]
}
