// crypto.ts: node:crypto with the random numbers of the seed. Passwords are hashed at once, not by the thread pool.
// Signatures are hashes.

import * as real from 'node:crypto'
import { machine } from '../machine/current.ts'
import { seededBytes, seededUuid } from '../machine/globals.ts'

export * from 'node:crypto'

export const randomUUID = seededUuid

export function randomBytes(length: number, callback?: (error: Error | null, bytes: Buffer) => void): Buffer {
  const bytes = seededBytes(length)
  if (callback !== undefined) machine().kernel.schedule(0, () => callback(null, bytes))
  return bytes
}

export function randomFillSync(target: Uint8Array): Uint8Array {
  target.set(seededBytes(target.length))
  return target
}

export function randomInt(below: number): number {
  return machine().random.below(below)
}

/**
 * Nobody here has the key with which a signature could be verified, and ECDSA takes longer than the rest of a
 * submission.
 */
export const sign = ((algorithm: string, bytes: Uint8Array) =>
  Buffer.concat([real.hash(algorithm, bytes, 'buffer'), signatureRest])) as unknown as typeof real.sign

const signatureRest = Buffer.alloc(39)

/** About what a hash with the least cost takes. */
const hashMs = 20

export const scrypt = ((...given: Parameters<typeof real.scryptSync>) => {
  const callback = given.at(-1) as unknown as (error: Error | null, key: Buffer) => void
  const [password, salt, length, options] = given
  const key = real.scryptSync(password, salt, length, typeof options === 'function' ? {} : options)
  machine().kernel.schedule(hashMs, () => callback(null, key))
}) as unknown as typeof real.scrypt

const all = { ...real, randomUUID, randomBytes, randomFillSync, randomInt, scrypt, sign }
export default all
export { all as 'module.exports' }
