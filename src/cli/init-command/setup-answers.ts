// setup-answers.ts: what `init` must know: from its options, and for what they do not say from a person at a
// terminal.

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
import { untouched, type NewDevice, type Setup } from './new-config.ts'

export type AccessKeys = { accessKeyId: string; secretAccessKey: string }

export type SetupOptions = {
  service?: string
  providerKey?: string
  listen?: string
  tlsCert?: string
  tlsKey?: string
  preset?: string
  model?: string
  carrier?: string
  operator?: string
  assetType?: string
  unknown?: string
  device?: string[]
  spool?: string
  spoolMax?: string
  addSource?: string
  addProvider?: string
  topic?: string
  provider?: string
  input: boolean
}

/** The options that stand for an answer. */
export function withSetupOptions(command: Command): Command {
  return command
    .option('--service <url>', 'URL of the ingestion API, without /v2 and what follows it')
    .option('--provider-key <key>', 'X-Provider-Key of each request')
    .option('--listen <url>', 'address for devices, such as mqtt://0.0.0.0:1883')
    .option('--tls-cert <file>', 'certificate of the listener, for mqtts:// and wss://')
    .option('--tls-key <file>', 'key of the certificate')
    .option('--preset <name>', 'how devices send: a preset, or `json` for the JSON of the example')
    .option('--model <name>', 'model of the devices, for presets that need one')
    .option('--carrier <name>', 'carrier of the vehicles')
    .option('--operator <name>', 'operator of the vehicles')
    .option('--asset-type <type>', 'type of the vehicles')
    .option('--device <key>', 'a device, as KEY or KEY=ASSET; give it again for each', collected)
    .option('--unknown <what>', 'devices that are not in the table: accept, quarantine or ignore')
    .option('--spool <dir>', 'directory of the spool, on a local disk')
    .option('--spool-max <size>', 'most that the spool may take, such as 20GiB')
    .option(
      '--add-source <name>',
      'add a source to the config that is there, with --preset, --topic, --provider',
    )
    .option('--add-provider <name>', 'add a provider to it, with --provider-key, --service or --keys')
    .option('--topic <filter>', 'with --add-source: topic of its devices (default: that of the preset)')
    .option('--provider <name>', 'with --add-source: the provider of its devices')
    .option('--no-input', 'ask nothing, also at a terminal')
}

function collected(value: string, before: string[] = []): string[] {
  return [...before, value]
}

/** `keysGiven`: no keys are asked for. Rejects with USAGE. */
export async function completeSetup(
  io: CommandIo,
  options: SetupOptions,
  keysGiven: boolean,
): Promise<{ setup: Setup; keys: AccessKeys | null }> {
  const isTerminal = (io.stdin as { isTTY?: boolean }).isTTY === true
  if (!isTerminal || !options.input) return { setup: await setupOf(options, null), keys: null }
  const questions = openQuestions(io)
  try {
    io.stdout.write(
      'Enter takes the value in [brackets]. Ctrl-C ends without a change. Nothing is written before the last question.\n\n',
    )
    const setup = await setupOf(options, questions)
    return { setup, keys: keysGiven ? null : await askKeys(questions) }
  } finally {
    questions.close()
  }
}

/** The option, the answer of a person, or the default. */
export function givenBy(questions: Questions | null) {
  return async <Value>(name: string, option: string | undefined, asked: Asked<Value>): Promise<Value> => {
    if (option !== undefined) return valueOf(name, asked.parse(option))
    if (questions !== null) return questions.ask(asked)
    if (asked.fallback === undefined) throw missing(name)
    return valueOf(name, asked.parse(asked.fallback))
  }
}

type Asked<Value> = { text: string; fallback?: string; parse: (line: string) => Parsed<Value> }

async function setupOf(options: SetupOptions, questions: Questions | null): Promise<Setup> {
  const given = givenBy(questions)
  const service = await given('--service', options.service, {
    text: 'URL of the ingestion API, without /v2',
    parse: serviceUrl,
  })
  const maybe = (name: string, option: string | undefined, question: string) =>
    given(name, option, { text: question, fallback: '', parse: text })
  const providerKey = await maybe(
    '--provider-key',
    options.providerKey,
    'X-Provider-Key that your contract names (Enter: none)',
  )
  const isTls = options.tlsCert !== undefined || options.tlsKey !== undefined
  const listen = await given('--listen', options.listen, {
    text: 'Address for devices (127.0.0.1 instead of 0.0.0.0: this machine alone)',
    fallback: isTls ? 'mqtts://0.0.0.0:8883' : 'mqtt://0.0.0.0:1883',
    parse: listenerUrl,
  })
  const isSecure = /^(mqtts|wss):/.test(listen)
  const pathOf = (name: string, option: string | undefined, what: string) =>
    given(name, option, { text: what, parse: (line) => nonEmpty(line, 'Give the path of a PEM file.') })
  const tls = isSecure
    ? {
        cert: await pathOf('--tls-cert', options.tlsCert, 'File with the certificate of the listener'),
        key: await pathOf('--tls-key', options.tlsKey, 'File with its key'),
      }
    : null
  if (!isSecure && isTls) throw usage('--tls-cert and --tls-key are for a listener with mqtts:// or wss://.')
  const preset = await given('--preset', options.preset, {
    text: 'How devices send: a preset (? lists them), or json',
    fallback: 'json',
    parse: presetName,
  })
  const model = preset?.startsWith('teltonika')
    ? await maybe(
        '--model',
        options.model,
        'Model of the trackers, such as FMC650 (Enter: in the device table)',
      )
    : (options.model ?? null)
  const word = (name: string, option: string | undefined, asked: { text: string; fallback: string }) =>
    given(name, option, { ...asked, parse: (line) => nonEmpty(line, 'Give a name.') })
  return {
    service,
    providerKey,
    listen,
    tls,
    preset,
    model,
    carrier: await maybe('--carrier', options.carrier, 'Carrier, as the service calls it (Enter: none)'),
    operator: await maybe('--operator', options.operator, 'Operator, as the service calls it (Enter: none)'),
    assetType: await maybe(
      '--asset-type',
      options.assetType,
      'Type of the vehicles, such as TRACTOR (Enter: none)',
    ),
    unknown: await given('--unknown', options.unknown, {
      text: 'Devices that are not in the table: accept, quarantine or ignore',
      fallback: untouched.unknown,
      parse: unknownRule,
    }),
    devices: await devicesOf(options.device ?? [], questions),
    spoolPath: await word('--spool', options.spool, { text: 'Spool', fallback: untouched.spoolPath }),
    spoolBytes: await given('--spool-max', options.spoolMax, {
      text: 'Most that the spool may take',
      fallback: untouched.spoolBytes,
      parse: size,
    }),
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

export function valueOf<Value>(name: string, parsed: Parsed<Value>): Value {
  if ('value' in parsed) return parsed.value
  throw usage(`${name}: ${parsed.problem}`)
}

export function text(line: string): Parsed<string | null> {
  return { value: line === '' ? null : line }
}

function nonEmpty(line: string, problem: string): Parsed<string> {
  return line === '' ? { problem } : { value: line }
}

export function serviceUrl(line: string): Parsed<string> {
  const problem = problemOfBaseUrl(line)
  return problem === null ? { value: line.replace(/\/+$/, '') } : { problem: `The URL ${problem}.` }
}

function listenerUrl(line: string): Parsed<string> {
  const withScheme = /^[a-z]+:\/\//.test(line) ? line : `mqtt://${line}`
  const url = listenUrlOf(withScheme)
  return typeof url === 'string'
    ? { problem: 'Give a URL such as mqtt://0.0.0.0:1883, mqtts://0.0.0.0:8883 or wss://0.0.0.0:8084/mqtt.' }
    : { value: listenUrlText(url) }
}

const listColumns = 76

export function presetName(line: string): Parsed<string | null> {
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

function unknownRule(line: string): Parsed<Setup['unknown']> {
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
