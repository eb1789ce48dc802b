// passwd-command.ts: `passwd`: adds, changes, verifies and deletes users of a password file. It needs no
// daemon; a running one sees the change and reads the file again.

import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Command } from 'commander'
import { codeOf, GatewayError, messageOf } from '../std/gateway-error.ts'
import { parsePasswordFile, userNameProblem, withUser } from '../std/passwords/password-file.ts'
import { costMax, costMin, hashPassword, verifyPassword } from '../std/passwords/passwords.ts'
import { quote } from '../std/quote.ts'
import { readUtf8 } from '../std/file-system/utf8-text.ts'
import { wholeNumber } from './terminal/option-values.ts'
import { readPassword } from './terminal/password-input.ts'
import { replaceFile } from '../std/file-system/replace-file.ts'
import type { BuildCommand, CommandIo, ExitStatus } from './terminal/terminal.ts'
import { notes } from './terminal/text-format.ts'

type PasswdOptions = { delete?: boolean; verify?: boolean; cost: number }

/** About 8 ms: 5,000 devices that connect at once are checked within a minute. */
export const deviceCost = 12

export const passwdCommand: BuildCommand = (io, done) =>
  new Command('passwd')
    .argument('<file>', 'password file; created if it is missing')
    .argument('<user>', 'user name')
    .option('--verify', 'check a password instead; exit status 1 if it is wrong')
    .option('--delete', 'delete the user instead')
    .option(
      '--cost <number>',
      `cost of the hash, ${costMin} to ${costMax}; each step doubles the time and the memory of a check`,
      wholeNumber(costMin, costMax),
      deviceCost,
    )
    .addHelpText(
      'after',
      notes(
        'Asks for the password without showing it, or reads the first line of stdin.',
        'The file stores a scrypt hash. A running daemon reads a changed file again by itself.',
      ),
    )
    .action(async (file: string, user: string, options: PasswdOptions) => {
      done(await changeUser(io, file, user, options))
    })

async function changeUser(
  io: CommandIo,
  file: string,
  user: string,
  options: PasswdOptions,
): Promise<ExitStatus> {
  const problem = userNameProblem(user)
  if (problem !== null) throw usage(`The user name is not usable: it ${problem}.`)
  if (options.verify && options.delete) throw usage('Only one of --verify and --delete can be given.')
  const path = await realpath(resolve(file)).catch(() => resolve(file))
  if (options.verify) return verify(io, path, user)
  // Asked for before the lock is taken: a person may take minutes.
  if (options.delete) {
    await requireUser(path, user)
    await changeFile(path, (text) => withUser(text, user, null))
    io.stdout.write(`Deleted user ${quote(user)}. A daemon that reads the file closes its connections.\n`)
    return 0
  }
  const password = await readPassword(io, `Password of ${user}`, true)
  await storePassword(path, user, password, options.cost)
  io.stdout.write(`Stored the password of user ${quote(user)} in ${path}.\n`)
  return 0
}

async function verify(io: CommandIo, path: string, user: string): Promise<ExitStatus> {
  const expected = await requireUser(path, user)
  const password = await readPassword(io, `Password of ${user}`, false)
  const isRight = await verifyPassword(Buffer.from(password), expected)
  io.stdout.write(isRight ? 'The password is right.\n' : 'The password is wrong.\n')
  return isRight ? 0 : 1
}

async function requireUser(path: string, user: string) {
  const { users, problems } = parsePasswordFile(await readText(path))
  const [first] = problems
  if (first !== undefined) throw unreadable(path, `Line ${first.line} ${first.message}.`)
  const found = users.get(user)
  if (found === undefined) throw unreadable(path, `It has no user ${quote(user)}.`)
  return found
}

export async function storePassword(
  path: string,
  user: string,
  password: string,
  cost: number = deviceCost,
): Promise<void> {
  const hash = await hashPassword(password, cost)
  await changeFile(path, (text) => withUser(text, user, hash))
}

/** The text of the file, which may not be there yet where `isNew` is given. */
async function readText(path: string, isNew?: string): Promise<string> {
  try {
    return await readUtf8(path)
  } catch (error) {
    if (isNew !== undefined && codeOf(error) === 'ENOENT') return isNew
    throw unreadable(path, `${messageOf(error)}.`, error)
  }
}

/** The file has only lines that can be read, before and after. */
async function changeFile(path: string, change: (text: string) => string): Promise<void> {
  await replaceFile(path, { noun: 'password file', mode: 0o600 }, async () => {
    const text = change(await readText(path, ''))
    const { problems } = parsePasswordFile(text)
    const [first] = problems
    if (first !== undefined) throw unreadable(path, `Line ${first.line} ${first.message}.`)
    return text
  })
}

function usage(why: string): GatewayError {
  return new GatewayError('USAGE', {
    what: 'The command cannot run.',
    why,
    act: 'Run it with --help to see its usage.',
  })
}

function unreadable(path: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('PASSWORDS_INVALID', {
    what: `The password file ${path} cannot be used.`,
    why,
    act: 'Check the path and the user name. A wrong line can be deleted with an editor.',
    ...(cause === undefined ? {} : { cause }),
  })
}
