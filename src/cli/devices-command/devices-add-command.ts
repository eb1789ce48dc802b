// devices-add-command.ts: `devices add`, and `devices accept` with --config: write the row of a device into
// the device table.

import { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { loadConfig, openDeviceTable, type Config, type TableChange } from '../../config/config.ts'
import { deviceListed, deviceRowOf, operationNamed, type DeviceView } from '../../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { storePassword } from '../passwd-command.ts'
import { readPassword } from '../terminal/password-input.ts'
import { checked, parametersOf, withParameters, type GivenParameters } from '../operation-command.ts'
import { printAnswer, type BuildCommand, type CommandIo, type ExitStatus } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { inForceText, putInForce } from './table-in-force.ts'

type AddOptions = DaemonOptions & { password?: boolean; replace?: boolean }

type Added = TableChange & { device: string; inForce: boolean; passwordFile: string | null }

/** Has the fields of a row as its parameters. */
const accept = operationNamed('devices/accept')

type Row = Parameters<typeof deviceRowOf>[0]

export const addCommand: BuildCommand = (io, done) => {
  const command = withParameters(withDaemonOptions(new Command('add')), accept)
  return command
    .description('Add a device to the device table of the config.')
    .option('--password', 'store a password for the user name <key>, too; asks for it, or reads stdin')
    .option('--replace', 'replace the row of a device that is listed')
    .addHelpText(
      'after',
      notes(
        'Needs --config, and the right to write the file that devices.file names. All else in the file stays as it is.',
      ),
    )
    .action(async () => {
      const options = command.opts<AddOptions>()
      const { values } = checked(accept, parametersOf(command, accept))
      printAnswer(io, options, await addDevice(io, values as Row, options), addedText)
      done(0)
    })
}

/** `devices accept` with --config: the command changes the table. */
export function acceptByConfig(
  options: DaemonOptions,
  given: GivenParameters,
  io: CommandIo,
): Promise<ExitStatus> | null {
  return options.config === undefined ? null : acceptWith(options, checked(accept, given).values as Row, io)
}

async function acceptWith(options: DaemonOptions, row: Row, io: CommandIo): Promise<ExitStatus> {
  const path = `/devices/${encodeURIComponent(row.device)}`
  const device = (await requestByOptions(daemonOf(options), io, { path, method: 'GET' })) as DeviceView
  if (device.kind !== 'device') throw notADevice(row.device, device)
  if (device.listed) throw deviceListed(row.device)
  const { quarantined } = device
  const added = { ...(await addDevice(io, row, options)), quarantined }
  const leaves = 'Its messages leave the quarantine. `quarantine list` shows those that are left.\n'
  printAnswer(io, options, added, () => `${addedText(added)}${quarantined === 0 ? '' : leaves}`)
  return 0
}

async function addDevice(io: CommandIo, row: Row, options: AddOptions): Promise<Added> {
  const { device: key } = row
  const { config } = await loadConfig(requireConfig(options), { env: io.env })
  const table = await openDeviceTable(config)
  const passwordFile = options.password ? passwordFileOf(config) : null
  // Asked for before the file is locked: a person may take minutes.
  const password = passwordFile === null ? null : await readPassword(io, `Password of ${key}`, true)
  const change = await table.change([deviceRowOf(row)], options.replace ? 'replace' : 'report')
  if (passwordFile !== null && password !== null) await storePassword(passwordFile, key, password)
  return { device: key, ...change, passwordFile, inForce: await putInForce(io, daemonOf(options)) }
}

/** The config names the daemon, unless another option does. */
export function daemonOf({ config, socket, url, user, passwordFile }: DaemonOptions): DaemonOptions {
  const place = socket !== undefined ? { socket } : url !== undefined ? { url } : { config: config ?? '' }
  return {
    ...place,
    ...(user === undefined ? {} : { user }),
    ...(passwordFile === undefined ? {} : { passwordFile }),
  }
}

export function requireConfig({ config }: DaemonOptions): string {
  if (config !== undefined) return config
  throw new GatewayError('USAGE', {
    what: 'The command needs --config.',
    why: 'The config names the device table.',
    act: 'Give --config with the config of the daemon.',
  })
}

function passwordFileOf({ ingest: { broker } }: Config): string {
  const file = [broker.access, ...broker.listeners.map(({ access }) => access)]
    .map((access) => access?.password_file)
    .find((one) => one !== undefined)
  if (file !== undefined) return file
  throw new GatewayError('USAGE', {
    what: 'The password cannot be stored.',
    why: 'The config names no password file (ingest.broker.access.password_file).',
    act: 'Name one in the config. Nothing was changed.',
  })
}

function addedText({ device, file, added, replaced, passwordFile, inForce }: Added): string {
  const what =
    added > 0
      ? `${quote(device, 80)} is in the device table ${file}.`
      : replaced > 0
        ? `The row of ${quote(device, 80)} in ${file} was replaced.`
        : `${quote(device, 80)} is in the device table ${file} already, with these fields.`
  const password = passwordFile === null ? '' : `Its password is in ${passwordFile}.\n`
  return `${what}\n${password}${inForceText(inForce)}`
}

function notADevice(key: string, { why }: DeviceView): GatewayError {
  return new GatewayError('USAGE', {
    what: `${quote(key, 80)} is a client that was refused, and no device.`,
    why: why ?? 'No message of it has come.',
    act: 'Add the device with `devices add` under the key that its topic or its messages name.',
  })
}
