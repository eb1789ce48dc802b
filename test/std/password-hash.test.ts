import { scryptSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { costMin, hashPassword, parsePasswordHash, verifyPassword } from '../../src/std/password-hash.ts'

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
