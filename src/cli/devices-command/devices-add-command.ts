// devices-add-command.ts: `devices add` and `devices accept`: write the row of a device into the device
// table.

import { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { Config } from '../../config/config.ts'
import type { DeviceFields } from '../../mapping/mapping.ts'
import type { DeviceView } from '../../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { storePassword } from '../passwd-command.ts'
import { readPassword } from '../terminal/password-input.ts'
import { printAnswer, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { inForceText, openTable, putInForce, type TableChange } from './device-table-file.ts'

type RowOptions = {
  asset?: string
  type?: string
  operator?: string
  carrier?: string
  provider?: string
  manufacturer?: string
  model?: string
  privacy?: string
  zone?: string
}

type AddOptions = DaemonOptions & RowOptions & { password?: boolean; replace?: boolean }

type Added = TableChange & { device: string; inForce: boolean; passwordFile: string | null }

const columnOf = {
  asset: 'asset_id',
  type: 'asset_type',
  operator: 'operator',
  carrier: 'carrier',
  provider: 'provider',
  manufacturer: 'manufacturer',
  model: 'model',
  privacy: 'privacy',
  zone: 'zone',
} as const

function withRowOptions(command: Command): Command {
  return command
    .option('--asset <id>', 'asset of the device (default: the key)')
    .option('--type <type>', 'type of the asset')
    .option('--operator <name>', 'operator of the asset')
    .option('--carrier <name>', 'carrier')
    .option('--provider <name>', 'provider of the config')
    .option('--manufacturer <name>', 'manufacturer of the device')
    .option('--model <name>', 'model of the device')
    .option('--privacy <profile>', 'privacy profile of the config')
    .option('--zone <name>', 'time zone of its local times, such as Europe/Berlin')
}

export const addCommand: BuildCommand = (io, done) =>
  withRowOptions(withDaemonOptions(new Command('add')))
    .description('Add a device to the device table of the config.')
    .argument('<key>', 'key of the device, as its topic or its messages name it')
    .option('--password', 'store a password for the user name <key>, too; asks for it, or reads stdin')
    .option('--replace', 'replace the row of a device that is listed')
    .addHelpText(
      'after',
      notes(
        'Needs --config, and the right to write the file that devices.file names. All else in the file stays as it is.',
      ),
    )
    .action(async (key: string, options: AddOptions) => {
      const added = await addDevice(io, key, options)
      printAnswer(io, options, added, addedText)
      done(0)
    })

export const acceptCommand: BuildCommand = (io, done) =>
  withRowOptions(withDaemonOptions(new Command('accept')))
    .description('Add a device that sends and is not listed to the device table, and release its messages.')
    .argument('<key>', 'key of the device, as `devices` lists it')
    .addHelpText(
      'after',
      notes(
        'Needs --config and the running daemon, which knows the device. Its messages in quarantine are mapped in ' +
          'their order as soon as the table is in force.',
      ),
    )
    .action(async (key: string, options: DaemonOptions & RowOptions) => {
      requireConfig(options)
      const path = `/devices/${encodeURIComponent(key)}`
      const device = (await requestByOptions(daemonOf(options), io, { path, method: 'GET' })) as DeviceView
      if (device.kind !== 'device') throw notADevice(key, device)
      if (device.listed) throw listed(key)
      const added = await addDevice(io, key, options)
      printAnswer(io, options, { ...added, quarantined: device.quarantined }, (answer) =>
        device.quarantined === 0
          ? addedText(answer)
          : `${addedText(answer)}Its messages leave the quarantine. \`quarantine list\` shows those that are left.\n`,
      )
      done(0)
    })

async function addDevice(io: CommandIo, key: string, options: AddOptions): Promise<Added> {
  const table = await openTable(io, requireConfig(options))
  const passwordFile = options.password ? passwordFileOf(table.config) : null
  // Asked for before the file is locked: a person may take minutes.
  const password = passwordFile === null ? null : await readPassword(io, `Password of ${key}`, true)
  const change = await table.change([rowOf(key, options)], options.replace ? 'replace' : 'report')
  if (passwordFile !== null && password !== null) await storePassword(passwordFile, key, password)
  return { device: key, ...change, passwordFile, inForce: await putInForce(io, daemonOf(options)) }
}

function rowOf(key: string, options: RowOptions): DeviceFields {
  const fields = Object.entries(columnOf).flatMap(([option, column]) => {
    const value = options[option as keyof RowOptions]
    return value === undefined ? [] : [[column, value] as const]
  })
  return { device: key, ...Object.fromEntries(fields) }
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

function listed(key: string): GatewayError {
  return new GatewayError('DEVICE_LISTED', {
    what: `The device ${quote(key, 80)} is in the device table already.`,
    why: 'Only a device that is not listed can be accepted.',
    act: 'Edit its row, or use `devices add --replace`.',
  })
}

function notADevice(key: string, { why }: DeviceView): GatewayError {
  return new GatewayError('USAGE', {
    what: `${quote(key, 80)} is a client that was refused, and no device.`,
    why: why ?? 'No message of it has come.',
    act: 'Add the device with `devices add` under the key that its topic or its messages name.',
  })
}
