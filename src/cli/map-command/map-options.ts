// map-options.ts: the options of `map`, and which of them go together.

import { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { wholeNumber } from '../terminal/option-values.ts'
import { notes } from '../terminal/text-format.ts'

export type MapOptions = {
  config?: string
  preset?: string
  model?: string
  sourceTopic?: string
  topic?: string
  client: string
  user?: string
  certificate?: string
  identity?: string
  retain?: boolean
  lines?: boolean
  ndjson?: boolean
  fromDeadLetters?: boolean
  fromTap?: boolean
  device?: string
  source?: string
  reason?: string
  count?: number
  socket?: string
  url?: string
  path?: string
  test?: boolean
  explain?: boolean
  json?: boolean
  watch?: boolean
}

export function withMapOptions(command: Command): Command {
  return command
    .argument('[file...]', 'files with one message each; - is stdin (default: stdin)')
    .option('--config <file>', 'map with the sources of this config')
    .option('--preset <name>', 'map with this preset alone, without a config')
    .option('--model <name>', 'with --preset: model of the devices')
    .option('--source-topic <pattern>', 'with --preset: topic pattern (default: that of the preset)')
    .option(
      '--topic <topic>',
      'topic of the messages (default with --preset: one that it reads); with --from-tap: topic filter',
    )
    .option('--client <id>', 'client id of the sender', 'map')
    .option('--user <name>', 'user name of the sender (default: none; with --preset, the client id)')
    .option('--certificate <name>', "common name of the sender's certificate (default: as --user)")
    .option('--identity <name>', 'identity of the sender (default: as --user)')
    .option('--retain', 'set the retain flag of the messages')
    .option('--lines', 'read each line as one message')
    .option('--ndjson', 'read each line as one message with its topic, as JSON')
    .option('--from-dead-letters', 'map the dead letters of the daemon, or of a spool at rest')
    .option('--from-tap', 'map the messages that arrive at the daemon')
    .option('--device <name>', 'with --from-...: only of this device')
    .option('--source <name>', 'with --from-...: only of this source')
    .option('--reason <code>', 'with --from-dead-letters: only with this reason, for example NO_SOURCE')
    .option('--count <messages>', 'end after this many messages (default: no end)', wholeNumber(1, 1e15))
    .option('--socket <path>', 'with --from-...: control socket of the daemon')
    .option('--url <url>', 'with --from-...: URL of the daemon')
    .option('--path <dir>', 'with --from-dead-letters: spool directory, which no daemon may use')
    .option('--explain', 'print where each value comes from, and why one is missing')
    .option('--json', 'with --explain: print one JSON object for each message')
    .option('--watch', 'do it again each time the config, a preset, the device table or the cases change')
    .option('--test', 'run cases: the given *.cases.yaml files, or those of the config and its presets')
    .addHelpText(
      'after',
      notes(
        'Prints one line of JSON for each message. Sends nothing and changes nothing.',
        'A line of --ndjson has `topic` and one of `payload`, `message` (text), `hex` and `base64`. Output of ' +
          '`mosquitto_sub -F %j`, `tap --json` and `dead-letters export` is such lines. Properties of MQTT 5 are ' +
          '`userProperties` and `properties`, as in those.',
        'Exit status 1: a message cannot be mapped, or a case fails.',
      ),
    )
}

/** Rejects options that contradict each other, or have no meaning together. */
export function checkOptions(options: MapOptions, files: readonly string[]): void {
  const { config, preset } = options
  if (config === undefined && preset === undefined)
    throw wrongUse('Neither --config nor --preset is given.', 'Give --config FILE, or --preset NAME.')
  const isLive = options.fromTap === true || options.fromDeadLetters === true
  const contradictions: [boolean, string][] = [
    [config !== undefined && preset !== undefined, '--config and --preset'],
    [options.lines === true && options.ndjson === true, '--lines and --ndjson'],
    [options.fromTap === true && options.fromDeadLetters === true, '--from-tap and --from-dead-letters'],
    [isLive && options.watch === true, '--watch and --from-...'],
    [isLive && files.length > 0, 'Files and --from-tap or --from-dead-letters'],
    [isLive && (options.lines ?? options.ndjson) === true, '--lines or --ndjson and --from-...'],
    [
      options.fromTap === true && (options.path ?? options.reason) !== undefined,
      '--from-tap and --path or --reason',
    ],
  ]
  for (const [found, names] of contradictions)
    if (found) throw wrongUse(`${names} are given together.`, 'Give one of them.')
  const { topic, fromTap, fromDeadLetters } = options
  if (topic === '' && fromTap !== true && fromDeadLetters !== true)
    throw wrongUse('The topic is empty.', 'Give the topic of a message, such as fleet/truck-7/data.')
  if (topic !== undefined && fromTap !== true && fromDeadLetters !== true && /[+#]/.test(topic))
    throw new GatewayError('USAGE', {
      what: `The topic ${quote(topic)} has a wildcard.`,
      why: 'Messages have a topic without wildcards; only filters of subscriptions have "+" and "#".',
      act: 'Give the topic of a message, such as fleet/truck-7/data.',
    })
  const alone: [string | undefined, boolean, string, string][] = [
    [options.model, preset !== undefined, '--model', '--preset'],
    [options.sourceTopic, preset !== undefined, '--source-topic', '--preset'],
    [options.device, isLive, '--device', '--from-tap or --from-dead-letters'],
    [options.source, isLive, '--source', '--from-tap or --from-dead-letters'],
    [options.reason, isLive, '--reason', '--from-dead-letters'],
    [options.socket, isLive, '--socket', '--from-tap or --from-dead-letters'],
    [options.url, isLive, '--url', '--from-tap or --from-dead-letters'],
    [options.path, isLive, '--path', '--from-dead-letters'],
  ]
  for (const [value, isAllowed, name, other] of alone)
    if (value !== undefined && !isAllowed)
      throw wrongUse(`${name} is given without ${other}.`, `Give ${other} too, or omit ${name}.`)
}

export function wrongUse(what: string, act: string): GatewayError {
  return new GatewayError('USAGE', { what, why: 'map needs to know what to map, and with what.', act })
}
