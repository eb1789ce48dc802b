// setup-files.ts: writes what `init` made: config, device table, users, keys.
//
// All files are written and checked in a folder beside them, and then renamed one by one, the config last. An
// end before that leaves everything as it was; an end in between leaves whole files, and no new config.
//
//   gateway.yaml     new. Where a person wrote the present one, --force, and the present one is kept
//   ingestion.json   the same; it is not touched where no keys are given
//   devices.csv      the rows of new devices are added; others stay as they are
//   users            the same; a user who is there keeps the password

import { randomInt } from 'node:crypto'
import { chmod, chown, copyFile, mkdir, mkdtemp, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { EpochMs } from '../../std/clock.ts'
import { codeOf, GatewayError, unreadable, unwritable, whyUnwritable } from '../../std/gateway-error.ts'
import { parsePasswordFile, withUser } from '../../std/passwords/password-file.ts'
import { hashPassword } from '../../std/passwords/passwords.ts'
import { quote } from '../../std/quote.ts'
import { editDevices } from '../../mapping/mapping.ts'
import { readRegular } from '../../std/file-system/regular-file.ts'
import { giveToOwner } from '../../storage/storage.ts'
import { deviceCost } from '../passwd-command.ts'
import { configText, newTable, newUsers, untouched, type Setup } from './new-config.ts'
import type { AccessKeys } from './setup-answers.ts'

export type WrittenSetup = {
  folder: string
  files: readonly string[]
  /** Files of a person that --force replaced, as they were. */
  kept: readonly string[]
  /** Passwords of new users. They are stored as hashes only. */
  passwords: readonly { user: string; password: string }[]
  hasKeys: boolean
}

type Texts = { config: string; table: string; users: string; keys: string }

const names = {
  config: 'gateway.yaml',
  table: 'devices.csv',
  users: 'users',
  keys: 'ingestion.json',
} as const

const serviceUser = 'telemetry-gateway'

/** Rejects with OUTPUT_UNWRITABLE where `init` would replace what a person wrote. */
export async function refuseReplacing(
  folder: string,
  { force, keys }: { force: boolean; keys: boolean },
): Promise<void> {
  if (force) return
  const { config, keys: presentKeys } = await textsIn(folder)
  const present = [
    ...(isReplaceable(config) ? [] : [names.config]),
    ...(keys && presentKeys.trim() !== '' ? [names.keys] : []),
  ].map((name) => join(folder, name))
  if (present.length === 0) return
  throw new GatewayError('OUTPUT_UNWRITABLE', {
    what: `${present.join(' and ')} ${present.length === 1 ? 'exists' : 'exist'} already.`,
    why: 'Without --force the command replaces nothing that a person wrote. Nothing was written.',
    act: 'Change the file with an editor, give another directory with --to, or give --force: it keeps the present file under another name.',
  })
}

function isReplaceable(config: string): boolean {
  return config === '' || config === configText(untouched)
}

/** `check` rejects where the config at the path is not valid. `now` names the files that are kept. */
export async function writeSetup(
  folder: string,
  { setup, keys, now }: { setup: Setup; keys: AccessKeys | null; now: EpochMs },
  check: (config: string) => Promise<void>,
): Promise<WrittenSetup> {
  const before = await textsIn(folder)
  const { users, passwords } = await withDevices(before.users || newUsers, setup)
  const texts: Texts = {
    config: configText(setup),
    table: withRows(join(folder, names.table), before.table || newTable, setup),
    users,
    keys: keys === null ? before.keys : `${JSON.stringify(keys, null, 2)}\n`,
  }
  const owner = await serviceOwner()
  try {
    await makeFolder(folder, owner)
    await using temporary = await temporaryFolder(folder)
    const order = ['table', 'users', 'keys', 'config'] as const
    for (const name of order)
      await writeFile(join(temporary.path, names[name]), texts[name], isSecret(name), owner)
    await check(join(temporary.path, names.config))
    const kept: string[] = []
    for (const name of order) {
      const path = join(folder, names[name])
      if (texts[name] === before[name] && texts[name] !== '') continue
      const isOwn =
        name === 'config' ? !isReplaceable(before.config) : name === 'keys' && before.keys.trim() !== ''
      if (isOwn) kept.push(await keepAside(path, now))
      await rename(join(temporary.path, names[name]), path)
    }
    await syncFolder(folder)
    const files = order.map((name) => join(folder, names[name]))
    return { folder, files, kept, passwords, hasKeys: texts.keys.trim() !== '' }
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw unwritable(
      folder,
      error,
      'Run the command with sudo, or give a directory that you may write with --to.',
      'write the config into',
    )
  }
}

function isSecret(name: keyof Texts): boolean {
  return name === 'users' || name === 'keys'
}

async function textsIn(folder: string): Promise<Texts> {
  const textOf = async (name: string) => {
    try {
      return await readRegular(join(folder, name))
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return ''
      throw unreadable(
        join(folder, name),
        error,
        codeOf(error) === 'EACCES'
          ? 'Run the command with sudo.'
          : 'Move it away, or give another directory with --to.',
      )
    }
  }
  const [config, table, users, keys] = await Promise.all(Object.values(names).map(textOf))
  return { config: config ?? '', table: table ?? '', users: users ?? '', keys: keys ?? '' }
}

function withRows(path: string, text: string, { devices }: Setup): string {
  const rows = devices.map(({ key, asset }) => ({ device: key, asset_id: asset }))
  const edited = editDevices(text, rows, { onConflict: 'report' })
  if (edited.kind === 'edited' && edited.conflicts.length === 0) return edited.text
  const why =
    edited.kind === 'invalid'
      ? `Line ${edited.line}: ${edited.message}.`
      : `It has ${edited.conflicts.map((key) => quote(key)).join(', ')} with other fields.`
  throw new GatewayError('DEVICES_INVALID', {
    what: `The devices cannot be added to ${path}.`,
    why,
    act: 'Correct the table with an editor, or leave out the device. Nothing was written.',
  })
}

async function withDevices(text: string, { devices }: Setup) {
  const passwords: { user: string; password: string }[] = []
  let users = text
  for (const { key } of devices) {
    if (parsePasswordFile(users).users.has(key)) continue
    const password = newPassword()
    passwords.push({ user: key, password })
    users = withUser(users, key, await hashPassword(password, deviceCost))
  }
  return { users, passwords }
}

/** Without characters that are mistaken for others when a person types them into a device. */
const letters = 'abcdefghjkmnpqrstuvwxyz23456789'

/** 16 letters of 31: 79 bits. */
function newPassword(): string {
  const group = () => Array.from({ length: 4 }, () => letters[randomInt(letters.length)]).join('')
  return Array.from({ length: 4 }, group).join('-')
}

/** Makes the spool, because the config has `create: false`. Returns why it is not made, or null. */
export async function makeSpool(path: string, now: EpochMs): Promise<string | null> {
  try {
    const owner = await serviceOwner()
    if (owner !== null && dirname(path) === dirname(untouched.spoolPath))
      await makeState(dirname(path), owner)
    // Only the last part, as for the config.
    await stat(dirname(path))
    // Loaded late: it brings the database.
    const { initSpool } = await import('../../spool/spool.ts')
    if ((await initSpool(path, now)) === null || owner === null) return null
    await chown(path, owner.uid, owner.gid)
    await giveToOwner(path)
    return null
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    const why = error instanceof GatewayError ? error.why : whyUnwritable(path, error)
    return `The spool ${path} is not made: ${why} Run \`spool init --path ${path}\` as the user of the gateway.`
  }
}

/** As StateDirectory of the unit does at the first start, and as the package does. */
async function makeState(folder: string, { uid, gid }: Owner): Promise<void> {
  if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) await chown(folder, uid, gid)
}

type Owner = { uid: number; gid: number }

/** Null where the files belong to the user of the command: not root, or a machine without that user. */
async function serviceOwner(): Promise<Owner | null> {
  if (process.geteuid?.() !== 0) return null
  const line = (await readFile('/etc/passwd', 'utf8').catch(() => ''))
    .split('\n')
    .find((one) => one.startsWith(`${serviceUser}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) }
}

async function makeFolder(folder: string, owner: Owner | null): Promise<void> {
  try {
    // Only the last part: a path whose parent is missing is misspelt.
    await mkdir(folder)
    await chmod(folder, 0o750)
    if (owner !== null) await chown(folder, 0, owner.gid)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !(await stat(folder)).isDirectory()) throw error
  }
}

async function temporaryFolder(folder: string) {
  const path = await mkdtemp(join(folder, '.init-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** The daemon may read the config and may not change it; secrets are its own. */
async function writeFile(path: string, text: string, secret: boolean, owner: Owner | null): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    if (owner !== null) await file.chown(secret ? owner.uid : 0, owner.gid)
    await file.chmod(secret ? 0o600 : 0o640)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function keepAside(path: string, now: EpochMs): Promise<string> {
  const kept = `${path}.replaced-${new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')}`
  await copyFile(path, kept)
  const { uid, gid, mode } = await stat(path)
  if (process.geteuid?.() === 0) await chown(kept, uid, gid)
  await chmod(kept, mode & 0o777)
  return kept
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
