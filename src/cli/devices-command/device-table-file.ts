// device-table-file.ts: changes the device table that a config names, which stays a file that people edit,
// and lets a running daemon read it.
//
// The table is checked before and after the change: one with a problem is left as it is.

import { readFile, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { utf8Text } from '../../std/file-system/utf8-text.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { loadConfig, type Config } from '../../config/config.ts'
import { providerNames } from '../../delivery/config.ts'
import { editDevices, readDeviceFields, type DeviceFields } from '../../mapping/mapping.ts'
import { requestByOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { replaceFile } from '../terminal/replace-file.ts'
import type { CommandIo } from '../terminal/terminal.ts'

export type TableChange = { file: string; added: number; replaced: number; same: number }

export type OpenTable = {
  file: string
  config: Config
  /** Checked as the daemon checks them. Rejects with DEVICES_INVALID. */
  read(bytes: Buffer, name: string): readonly DeviceFields[]
  /** Rejects with DEVICE_LISTED for devices with another row, unless they are replaced. */
  change(rows: readonly DeviceFields[], onConflict: 'replace' | 'report'): Promise<TableChange>
}

/** Rejects with CONFIG_UNREADABLE, CONFIG_INVALID, or USAGE for a config without a device table. */
export async function openTable(io: CommandIo, configFile: string): Promise<OpenTable> {
  const { config } = await loadConfig(configFile, { env: io.env })
  const named = config.devices.file
  if (named === undefined)
    throw new GatewayError('USAGE', {
      what: `The config ${configFile} names no device table.`,
      why: 'devices.file is not set.',
      act: 'Add `devices: { file: devices.csv }` to the config, and restart the daemon or run `reload`.',
    })
  const file = await realpath(resolve(named)).catch(() => resolve(named))
  const providers = providerNames(config.delivery)
  const profiles = Object.keys(config.privacy.profiles)
  return { file, config, read, change }

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

/**
 * Lets the daemon read the table. Resolves with false where none answers: it reads the table at its start.
 * Rejects with the problem where the daemon refuses the table or the config.
 */
export async function putInForce(io: CommandIo, options: DaemonOptions): Promise<boolean> {
  try {
    const request = { path: '/control/reload', method: 'POST', timeoutMs: Infinity } as const
    await requestByOptions(options, io, request)
    return true
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'DAEMON_UNREACHABLE') return false
    throw error
  }
}

export function inForceText(isInForce: boolean): string {
  return isInForce
    ? 'It is in force.\n'
    : 'No daemon answers; a daemon that runs reads the file by itself, and else at its start.\n'
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
