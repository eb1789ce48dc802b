import { hash as digestOf, scryptSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  costMin,
  hashPassword,
  parsePasswordHash,
  verifyPassword,
} from '../../../src/std/passwords/passwords.ts'

async function hashOf(password: string) {
  const parsed = parsePasswordHash(await hashPassword(password, costMin))
  if (parsed === null) throw new Error('own hash not read')
  return parsed
}

describe('a hashed password', () => {
  test('is verified, and no other one is', async () => {
    const hash = await hashOf('tief im Wald')
    expect(await verifyPassword(Buffer.from('tief im Wald'), hash)).toBe(true)
    for (const other of ['', 'tief im wald', 'tief im Wald ', 'x'.repeat(2000)])
      expect(await verifyPassword(Buffer.from(other), hash), other).toBe(false)
  })

  test('is scrypt with a salt of its own, in text that other programs can read', async () => {
    const text = await hashPassword('secret')
    expect(text).toMatch(/^\$scrypt\$ln=14,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(await hashPassword('secret')).not.toBe(text)
    const [, , , salt = '', hash = ''] = text.split('$')
    const expected = scryptSync('secret', Buffer.from(salt, 'base64'), 32, { N: 2 ** 14, r: 8, p: 1 })
    expect(Buffer.from(hash, 'base64')).toEqual(expected)
  })

  test('counts byte by byte, although scrypt gives some others the same hash', async () => {
    for (const right of ['secret', 'x'.repeat(64), 'long '.repeat(20), 'sch\u00f6n']) {
      const hash = await hashOf(right)
      const bytes = Buffer.from(right)
      expect(await verifyPassword(bytes, hash)).toBe(true)
      for (const zeros of [1, 2, 58]) {
        const longer = Buffer.concat([bytes, Buffer.alloc(zeros)])
        expect(await verifyPassword(longer, hash), `${right} and ${zeros} zeros`).toBe(false)
      }
      expect(await verifyPassword(digestOf('sha256', bytes, 'buffer'), hash), right).toBe(false)
    }
    // What is refused does have the same hash.
    const salt = Buffer.alloc(16)
    const long = 'long '.repeat(20)
    expect(scryptSync('secret\0', salt, 32)).toEqual(scryptSync('secret', salt, 32))
    expect(scryptSync(digestOf('sha256', long, 'buffer'), salt, 32)).toEqual(scryptSync(long, salt, 32))
  })

  test('may have null characters within', async () => {
    const hash = await hashOf('se\0cret')
    expect(await verifyPassword(Buffer.from('se\0cret'), hash)).toBe(true)
    expect(await verifyPassword(Buffer.from('se'), hash)).toBe(false)
  })

  test('that another program hashed is verified', async () => {
    for (const right of ['secret', 'long '.repeat(20)]) {
      const salt = Buffer.alloc(16, 7)
      const hash = scryptSync(right, salt, 32, { N: 2 ** 12, r: 8, p: 1 })
      expect(await verifyPassword(Buffer.from(right), { ln: 12, r: 8, p: 1, salt, hash })).toBe(true)
    }
  })

  const salt = 'c2FsdHNhbHRzYWx0c2FsdA'
  const hash = 'aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g'
  test.each([
    ['weak', `$scrypt$ln=8,r=8,p=1$${salt}$${hash}`],
    ['memory without end', `$scrypt$ln=31,r=8,p=1$${salt}$${hash}`],
    ['another block size', `$scrypt$ln=14,r=32,p=1$${salt}$${hash}`],
    ['no salt', `$scrypt$ln=14,r=8,p=1$$${hash}`],
    ['a short hash', `$scrypt$ln=14,r=8,p=1$${salt}$aGFzaA`],
    ['another function', `$2b$12$${hash}`],
    ['plain text', 'secret'],
  ])('with %s is not read', (_, text) => {
    expect(parsePasswordHash(text)).toBeNull()
  })
})
