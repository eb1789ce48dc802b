// passwords.ts: passwords as scrypt hashes, and their verification. password-file.ts reads the files of them.
//
//   $scrypt$ln=14,r=8,p=1$<salt>$<hash>     salt and hash in base64 without padding; N is 2^ln
//
// scrypt needs 128 * r * 2^ln bytes (16 MiB with the default) and tens of milliseconds of a core. It runs on
// the threads of libuv, which write the spool as well. So the process computes one at a time; who asks often
// bounds its questions and remembers verified passwords.
//
// scrypt takes the password as the key of an HMAC-SHA-256. That fills keys of up to 64 bytes with zeros, and
// replaces longer ones by their SHA-256. So some byte strings have the same scrypt hash: "secret" with and
// without null bytes behind it, and a long password and its 32 bytes of SHA-256. What is hashed here is a
// text that does not end in a null character, and `verifyPassword` refuses everything else. Left is a SHA-256
// that is UTF-8 by chance, about one in 100 million.

import { isUtf8 } from 'node:buffer'
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { assert } from '../assert.ts'

export type PasswordHash = { ln: number; r: number; p: number; salt: Buffer; hash: Buffer }

/** log2 of N: 16 MiB and about 30 ms. */
export const defaultCost = 14
/** A hash in a file decides how much memory its check takes: 12 is 4 MiB, 17 is 128 MiB. */
export const costMin = 12
export const costMax = 17

const saltBytes = 16
const hashBytes = 32
/** Longer ones are refused without a computation. */
const passwordBytesMax = 1024

/** The text of a new hash. `password` does not end in a null character. */
export async function hashPassword(password: string, cost = defaultCost): Promise<string> {
  assert(!password.endsWith('\0'), 'a password does not end in a null character')
  const parameters = { ln: cost, r: 8, p: 1, salt: randomBytes(saltBytes) }
  const hash = await derive(Buffer.from(password), parameters, hashBytes)
  const [salt, derived] = [parameters.salt, hash].map((bytes) => bytes.toString('base64').replace(/=+$/, ''))
  return `$scrypt$ln=${cost},r=8,p=1$${salt}$${derived}`
}

/** Null for any other text, and for parameters that are too weak or take too much memory. */
export function parsePasswordHash(text: string): PasswordHash | null {
  const match =
    /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,88})={0,2}\$([A-Za-z0-9+/]{22,88})={0,2}$/.exec(
      text.trim(),
    )
  if (match === null) return null
  const [ln = 0, r = 0, p = 0] = match.slice(1, 4).map(Number)
  if (ln < costMin || ln > costMax || r !== 8 || p < 1 || p > 4) return null
  const [salt, hash] = match.slice(4).map((part) => Buffer.from(part, 'base64'))
  return salt === undefined || hash === undefined ? null : { ln, r, p, salt, hash }
}

/** Whether `password` is the one of the hash. Waits for other computations of the process. */
export async function verifyPassword(password: Buffer, expected: PasswordHash): Promise<boolean> {
  if (password.length > passwordBytesMax || password.at(-1) === 0 || !isUtf8(password)) return false
  return timingSafeEqual(await derive(password, expected, expected.hash.length), expected.hash)
}

/** The end of the last computation that was asked for. */
let last: Promise<unknown> = Promise.resolve()

function derive(
  password: Buffer,
  { ln, r, p, salt }: Omit<PasswordHash, 'hash'>,
  length: number,
): Promise<Buffer> {
  const options = { N: 2 ** ln, r, p, maxmem: 2 * 128 * r * 2 ** ln }
  const derived = last.then(
    () =>
      new Promise<Buffer>((resolve, reject) => {
        scrypt(password, salt, length, options, (error, key) => (error ? reject(error) : resolve(key)))
      }),
  )
  // The caller gets the failure; the next computation starts after it.
  last = derived.catch(() => undefined)
  return derived
}
