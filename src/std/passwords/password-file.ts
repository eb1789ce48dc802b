// password-file.ts: a file with users and the hashes of their passwords, one line each:
//
//   # a comment
//   truck-7:$scrypt$ln=12,r=8,p=1$<salt>$<hash>
//
// A user name may contain ":"; a hash has none, so the last one separates them.

import { parsePasswordHash, type PasswordHash } from './passwords.ts'

export type PasswordFileProblem = { line: number; message: string }

export type PasswordFile = {
  users: ReadonlyMap<string, PasswordHash>
  /** The file is not used while it has any. No message shows a hash. */
  problems: readonly PasswordFileProblem[]
}

const problemsMax = 20
const nameBytesMax = 256

export function parsePasswordFile(text: string): PasswordFile {
  const users = new Map<string, PasswordHash>()
  const problems: PasswordFileProblem[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (isNoUser(line)) continue
    const name = userOfLine(line)
    const hash = name === null ? null : parsePasswordHash(line.slice(name.length + 1))
    const message =
      name === null
        ? 'must be USER:HASH'
        : (userNameProblem(name) ??
          (hash === null
            ? 'must have a hash that `passwd` wrote, of the form $scrypt$ln=..,r=8,p=1$..$..'
            : null) ??
          (users.has(name) ? 'names a user of an earlier line' : null))
    if (message !== null) problems.push({ line: index + 1, message })
    else if (name !== null && hash !== null) users.set(name, hash)
    if (problems.length >= problemsMax) break
  }
  return { users, problems }
}

/** What is wrong with a user name; null where it can stand in a file. */
export function userNameProblem(name: string): string | null {
  if (name === '') return 'must have a user name'
  if (name.startsWith('#')) return 'must have a user name that does not begin with "#"'
  if (/[\p{Cc}]/u.test(name)) return 'must have a user name without control characters'
  return Buffer.byteLength(name) > nameBytesMax
    ? `must have a user name of at most ${nameBytesMax} bytes`
    : null
}

/** The text with the line of `name` replaced, added, or, where `hash` is null, removed. */
export function withUser(text: string, name: string, hash: string | null): string {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const index = lines.findIndex((line) => !isNoUser(line) && userOfLine(line) === name)
  const added = hash === null ? [] : [`${name}:${hash}`]
  if (index === -1) lines.push(...added)
  else lines.splice(index, 1, ...added)
  return lines.map((line) => `${line}\n`).join('')
}

function isNoUser(line: string): boolean {
  return line.trim() === '' || line.startsWith('#')
}

function userOfLine(line: string): string | null {
  const colon = line.lastIndexOf(':')
  return colon === -1 ? null : line.slice(0, colon)
}
