// device-table-file.ts: changes the device table that a config names, which stays a file that people edit.
//
// The table is checked before and after the change: one with a problem is left as it is.

import { readFile, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { utf8Text } from '../../std/file-system/utf8-text.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { providerNames } from '../../delivery/config.ts'
import { editDevices, readDeviceFields, type DeviceFields } from '../../mapping/mapping.ts'
import { replaceFile } from '../../std/file-system/replace-file.ts'

export type TableChange = { file: string; added: number; replaced: number; same: number }

export type OpenTable = {
  file: string
  /** Checked as the daemon checks them. Rejects with DEVICES_INVALID. */
  read(bytes: Buffer, name: string): readonly DeviceFields[]
  /** Rejects with DEVICE_LISTED for devices with another row, unless they are replaced. */
  change(rows: readonly DeviceFields[], onConflict: 'replace' | 'report'): Promise<TableChange>
}

type TableConfig = {
  devices: { file?: string | undefined }
  delivery: Parameters<typeof providerNames>[0]
  privacy: { profiles: object }
}

/** Rejects with USAGE for a config without a device table. */
export async function openDeviceTable(config: TableConfig): Promise<OpenTable> {
  const named = config.devices.file
  if (named === undefined)
    throw new GatewayError('USAGE', {
      what: 'The config names no device table.',
      why: 'devices.file is not set.',
      act: 'Add `devices: { file: devices.csv }` to the config, and restart the daemon or run `reload`.',
    })
  const file = await realpath(resolve(named)).catch(() => resolve(named))
  const providers = providerNames(config.delivery)
  const profiles = Object.keys(config.privacy.profiles)
  return { file, read, change }

  function read(bytes: Buffer, name: string): readonly DeviceFields[] {
    const found = readDeviceFields(bytes, providers, profiles)
    if ('rows' in found) return found.rows
    throw invalid(name, found)
  }

  async function change(
    rows: readonly DeviceFields[],
    onConflict: 'replace' | 'report',
  ): Promise<TableChange> {
    let counts = { added: 0, replaced: 0, same: 0 }
    await replaceFile(file, { noun: 'device table', mode: null }, async () => {
      const edited = editDevices(await textOf(file), rows, { onConflict })
      if (edited.kind === 'invalid') throw invalid(file, edited)
      const { text, conflicts, ...rest } = edited
      if (conflicts.length > 0) throw conflictOf(file, conflicts)
      read(Buffer.from(text), file)
      counts = rest
      return text
    })
    return { file, ...counts }
  }
}

/** Adds a device that is not listed. Resolves with the path of the table. */
export async function addListed(config: TableConfig, row: DeviceFields): Promise<string> {
  const table = await openDeviceTable(config)
  await table.change([row], 'report')
  return table.file
}

async function textOf(file: string): Promise<string> {
  try {
    const bytes = await readFile(file)
    utf8Text(bytes)
    // With a byte order mark, without which Excel reads a table of UTF-8 as another encoding.
    return bytes.toString()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return ''
    throw new GatewayError('DEVICES_INVALID', {
      what: `Cannot read the device table ${file}.`,
      why: `${messageOf(error)}.`,
      act: 'Check its permissions.',
      cause: error,
    })
  }
}

function invalid(file: string, { line, message }: { line: number; message: string }): GatewayError {
  return new GatewayError('DEVICES_INVALID', {
    what: `The device table ${file} cannot be used.`,
    why: `${file}:${line}  ${message}`,
    act: 'Correct this row. Nothing was changed.',
  })
}

const namesShown = 5

function conflictOf(file: string, devices: readonly string[]): GatewayError {
  const shown = devices.slice(0, namesShown).join(', ')
  const more = devices.length > namesShown ? ` and ${devices.length - namesShown} more` : ''
  return new GatewayError('DEVICE_LISTED', {
    what: `The device table ${file} has ${shown}${more} already, with other fields.`,
    why: 'A row is only replaced on request.',
    act: 'Edit the row, or run the command with --replace. Nothing was changed.',
  })
}
