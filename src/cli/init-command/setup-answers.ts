// setup-answers.ts: what `init` must know: a table with a row for each answer. A row is an option of the
// command, and for a person at a terminal a question; who gives neither gets the fallback. Rows are asked in
// their order.

import { Help, type Command } from 'commander'
import { packagedNames } from '../../config/config.ts'
import { problemOfBaseUrl } from '../../delivery/config.ts'
import { listenUrlOf, listenUrlText } from '../../ingest/config.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { parseSize } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import { userNameProblem } from '../../std/passwords/password-file.ts'
import { nearest } from '../../std/nearest-word.ts'
import { openQuestions, type Parsed, type Questions } from '../terminal/questions.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import type { NewProvider, NewSource } from './config-additions.ts'
import { untouched, type NewDevice, type Setup } from './new-config.ts'

export type AccessKeys = { accessKeyId: string; secretAccessKey: string }

/** Null: there is none. */
type Answer = string | null

type Row = {
  /** Stands for the value of the option. */
  value: string
  /** Of the option; with a capital it is the question. */
  help: string
  /** '' is no answer. Without a fallback, an answer is required. */
  fallback?: string
  parse?(line: string): Parsed<Answer>
  /** By the answers to the rows above. */
  isAsked?(answers: Before): boolean
}

type Before = { listen?: Answer; preset?: Answer }

const pem = (line: string) => nonEmpty(line, 'Give the path of a PEM file.')
const path = (line: string) => nonEmpty(line, 'Give a directory.')
const isTeltonika = ({ preset }: Before) => preset?.startsWith('teltonika') === true

const table = 'devices that are not in the table: accept, quarantine or ignore'
const presets = 'how devices send: a preset (? lists them), or json for the JSON of the example'
const address = 'address for devices (127.0.0.1 instead of 0.0.0.0: this machine alone)'

const rows = {
  service: {
    value: 'url',
    help: 'URL of the ingestion API, without /v2 and what follows it',
    parse: serviceUrl,
  },
  providerKey: { value: 'key', help: 'X-Provider-Key of each request, by your contract', fallback: '' },
  listen: { value: 'url', help: address, fallback: 'mqtt://0.0.0.0:1883', parse: listenerUrl },
  tlsCert: { value: 'file', help: 'certificate of the listener, a PEM file', parse: pem, isAsked: isSecure },
  tlsKey: { value: 'file', help: 'key of the certificate, a PEM file', parse: pem, isAsked: isSecure },
  preset: { value: 'name', help: presets, fallback: 'json', parse: presetName },
  model: { value: 'name', help: 'model of the trackers, such as FMC650', fallback: '', isAsked: isTeltonika },
  carrier: { value: 'name', help: 'carrier of the vehicles, as the service calls it', fallback: '' },
  operator: { value: 'name', help: 'operator of the vehicles, as the service calls it', fallback: '' },
  assetType: { value: 'type', help: 'type of the vehicles, such as TRACTOR', fallback: '' },
  unknown: { value: 'what', help: table, fallback: untouched.unknown, parse: unknownRule },
  spool: {
    value: 'dir',
    help: 'spool: a directory on a local disk',
    fallback: untouched.spoolPath,
    parse: path,
  },
  spoolMax: {
    value: 'size',
    help: 'most that the spool may take, such as 20GiB',
    fallback: untouched.spoolBytes,
    parse: size,
  },
} satisfies Record<string, Row>

/** Of `--add-source` and `--add-provider`; they share some with a new config. */
const additions = {
  addSource: {
    value: 'name',
    help: 'add a source to the config that is there: --preset, --topic, --provider',
  },
  addProvider: { value: 'name', help: 'add a provider to it: --provider-key, --service or --keys' },
  topic: { value: 'filter', help: 'topic of the devices of --add-source', fallback: '' },
  provider: { value: 'name', help: 'provider of the devices of --add-source', fallback: '' },
} satisfies Record<string, Row>

type Name = keyof typeof rows | keyof typeof additions

type Answers = Partial<Record<Name, Answer>>

export type SetupOptions = { [One in Name]?: string } & { device?: string[]; input: boolean }

/** The options that stand for an answer. */
export function withSetupOptions(command: Command): Command {
  const device = 'a device, as KEY or KEY=ASSET; give it again for each'
  const collected = (value: string, before: string[] = []) => [...before, value]
  for (const [one, { value, help }] of Object.entries<Row>({ ...rows, ...additions }))
    command.option(`${optionOf(one)} <${value}>`, help)
  return command
    .option('--device <key>', device, collected)
    .option('--no-input', 'ask nothing, also at a terminal')
}

function optionOf(one: string): string {
  return `--${one.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** The option, the answer of a person, or the fallback, of each row. Rejects with USAGE. */
async function answersTo(
  asked: Partial<Record<Name, Row>>,
  options: SetupOptions,
  questions: Questions | null,
): Promise<Answers> {
  const answers: Answers = {}
  for (const [one, row] of Object.entries(asked) as [Name, Row][]) {
    const { help, fallback, parse = text, isAsked = () => true } = row
    const given = options[one]
    if (given !== undefined) answers[one] = valueOf(optionOf(one), parse(given))
    else if (!isAsked(answers)) answers[one] = null
    else if (questions !== null)
      answers[one] = await questions.ask({
        text: `${help.charAt(0).toUpperCase()}${help.slice(1)}${fallback === '' ? ' (Enter: none)' : ''}`,
        parse,
        ...(fallback !== undefined && { fallback }),
      })
    else if (fallback !== undefined) answers[one] = valueOf(optionOf(one), parse(fallback))
    else throw missing(optionOf(one))
  }
  return answers
}

/** Null without a terminal, or with `--no-input`: then no question is asked. */
function questionsOf(io: CommandIo, { input }: SetupOptions): Questions | null {
  const isTerminal = (io.stdin as { isTTY?: boolean }).isTTY === true
  return isTerminal && input ? openQuestions(io) : null
}

/** `keysGiven`: no keys are asked for. Rejects with USAGE. */
export async function completeSetup(
  io: CommandIo,
  options: SetupOptions,
  keysGiven: boolean,
): Promise<{ setup: Setup; keys: AccessKeys | null }> {
  const questions = questionsOf(io, options)
  const isTls = options.tlsCert !== undefined || options.tlsKey !== undefined
  const listen = isTls ? { ...rows.listen, fallback: 'mqtts://0.0.0.0:8883' } : rows.listen
  try {
    if (questions !== null)
      io.stdout.write(
        'Enter takes the value in [brackets]. Ctrl-C ends without a change. Nothing is written before the last question.\n\n',
      )
    const answers = await answersTo({ ...rows, listen }, options, questions)
    const { tlsCert: cert, tlsKey: key, spool, spoolMax, unknown, ...others } = answers
    if (isTls && !isSecure(answers))
      throw usage('--tls-cert and --tls-key are for a listener with mqtts:// or wss://.')
    const setup = {
      ...others,
      tls: isSecure(answers) ? { cert, key } : null,
      unknown,
      devices: await devicesOf(options.device ?? [], questions),
      spoolPath: spool,
      spoolBytes: spoolMax,
    } as Setup
    return { setup, keys: questions === null || keysGiven ? null : await askKeys(questions) }
  } finally {
    questions?.close()
  }
}

/** For `--add-source` and `--add-provider`. Rejects with USAGE. */
export async function completeAddition(
  io: CommandIo,
  options: SetupOptions,
): Promise<{ source: NewSource | null; provider: Omit<NewProvider, 'keys'> | null }> {
  const questions = questionsOf(io, options)
  const { addSource, addProvider } = options
  const { fallback: _none, ...preset } = rows.preset
  const { topic, provider: of } = additions
  const neverAsked = { isAsked: () => false }
  const ofProvider = { service: { ...rows.service, ...neverAsked }, providerKey: rows.providerKey }
  const ofSource = { preset, topic, model: { ...rows.model, ...neverAsked }, provider: of }
  try {
    const added =
      addProvider === undefined
        ? null
        : { name: addProvider, ...(await answersTo(ofProvider, options, questions)) }
    const provider = added as NewProvider | null
    if (addSource === undefined) return { source: null, provider }
    const answers = await answersTo(ofSource, options, questions)
    const own = answers.preset === null ? `telemetry/${addSource}/{device}` : null
    const source = { name: addSource, ...answers, topic: answers.topic ?? own }
    return { source: source as NewSource, provider }
  } finally {
    questions?.close()
  }
}

async function devicesOf(options: readonly string[], questions: Questions | null): Promise<NewDevice[]> {
  const devices = options.map((option) => valueOf('--device', deviceOf(option)))
  const again = devices.find(({ key }, index) => devices.findIndex((one) => one.key === key) !== index)
  if (again !== undefined) throw usage(`--device has ${quote(again.key)} twice.`)
  if (questions === null || options.length > 0) return devices
  for (;;) {
    const device = await questions.ask({
      text:
        devices.length === 0 ? 'Device, as KEY or KEY=ASSET (Enter: none)' : 'Next device (Enter: no more)',
      fallback: '',
      parse: (line): Parsed<NewDevice | null> => {
        if (line === '') return { value: null }
        const parsed = deviceOf(line)
        if ('value' in parsed && devices.some(({ key }) => key === parsed.value.key))
          return { problem: `${quote(parsed.value.key)} is in the list already.` }
        return parsed
      },
    })
    if (device === null) return devices
    devices.push(device)
  }
}

async function askKeys(questions: Questions): Promise<AccessKeys | null> {
  const accessKeyId = await questions.ask({
    text: 'Access key id of the ingestion API (Enter: later)',
    fallback: '',
    parse: text,
  })
  if (accessKeyId === null) return null
  const secretAccessKey = await questions.ask({
    text: 'Secret access key (it is not shown)',
    hidden: true,
    parse: (line) => nonEmpty(line, 'Give the secret access key, or end with Ctrl-C.'),
  })
  return { accessKeyId, secretAccessKey }
}

function valueOf<Value>(name: string, parsed: Parsed<Value>): Value {
  if ('value' in parsed) return parsed.value
  throw usage(`${name}: ${parsed.problem}`)
}

function text(line: string): Parsed<string | null> {
  return { value: line === '' ? null : line }
}

function nonEmpty(line: string, problem: string): Parsed<string> {
  return line === '' ? { problem } : { value: line }
}

function serviceUrl(line: string): Parsed<string> {
  const problem = problemOfBaseUrl(line)
  return problem === null ? { value: line.replace(/\/+$/, '') } : { problem: `The URL ${problem}.` }
}

function isSecure({ listen }: Before): boolean {
  return /^(mqtts|wss):/.test(listen ?? '')
}

function listenerUrl(line: string): Parsed<string> {
  const withScheme = /^[a-z]+:\/\//.test(line) ? line : `mqtt://${line}`
  const url = listenUrlOf(withScheme)
  return typeof url === 'string'
    ? { problem: 'Give a URL such as mqtt://0.0.0.0:1883, mqtts://0.0.0.0:8883 or wss://0.0.0.0:8084/mqtt.' }
    : { value: listenUrlText(url) }
}

const listColumns = 76

function presetName(line: string): Parsed<string | null> {
  const names = packagedNames()
  if (line === 'json') return { value: null }
  if (names.includes(line)) return { value: line }
  const list = `Give json, or one of: ${names.join(', ')}.`
  if (line === '?') return { problem: new Help().boxWrap(list, listColumns).replaceAll('\n', '\n  ') }
  const meant = nearest(line, names)
  return {
    problem: `There is no preset ${quote(line)}. ${meant === undefined ? list : `Did you mean ${meant}?`}`,
  }
}

function unknownRule(line: string): Parsed<string> {
  if (line === 'accept' || line === 'quarantine' || line === 'ignore') return { value: line }
  return { problem: 'Give accept, quarantine or ignore.' }
}

function size(line: string): Parsed<string> {
  if (parseSize(line) !== undefined) return { value: line }
  return { problem: 'Give a size with its unit, such as 20GiB.' }
}

/** The key is a user name, too. */
function deviceOf(line: string): Parsed<NewDevice> {
  const at = line.indexOf('=')
  const key = (at === -1 ? line : line.slice(0, at)).trim()
  const asset = at === -1 ? key : line.slice(at + 1).trim()
  const problem = userNameProblem(key)
  if (problem !== null) return { problem: `The key ${problem}.` }
  return asset === '' ? { problem: 'The asset is empty. Give KEY or KEY=ASSET.' } : { value: { key, asset } }
}

function missing(name: string): GatewayError {
  return new GatewayError('USAGE', {
    what: `${name} is missing.`,
    why: 'There is no terminal to ask at, or --no-input is given.',
    act: `Give ${name}, or run the command at a terminal without --no-input. Nothing was written.`,
  })
}

function usage(why: string): GatewayError {
  return new GatewayError('USAGE', {
    what: 'The config cannot be made.',
    why,
    act: 'Run it with --help to see its usage. Nothing was written.',
  })
}
