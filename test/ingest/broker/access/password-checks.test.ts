import { beforeAll, describe, expect, test } from 'vitest'
import {
  createPasswordChecks,
  type CheckResult,
  type PasswordCheck,
} from '../../../../src/ingest/broker/access/password-checks.ts'
import {
  hashPassword,
  parsePasswordHash,
  type PasswordHash,
} from '../../../../src/std/passwords/passwords.ts'
import { eventually } from '../../../support/eventually.ts'

let expected: PasswordHash
beforeAll(async () => {
  expected = parsePasswordHash(await hashPassword('right', 12))!
})

function openChecks(options = { waitingMax: 100, rememberedMax: 100 }) {
  const checks = createPasswordChecks(options)
  const results: string[] = []
  const ask = (name: string, password: string, more: Partial<PasswordCheck> = {}) => {
    const [address = '', userName = ''] = name.split('/')
    const check = { address, userName, password: Buffer.from(password), expected, suspect: false }
    const checked = (result: CheckResult) => void results.push(`${name} ${password}: ${result}`)
    checks.check({ ...check, isClosed: () => false, ...more }, checked)
  }
  return { checks, results, ask }
}

describe('passwords against hashes', () => {
  test('are right or wrong, and are answered at once when they come again', async () => {
    const { checks, results, ask } = openChecks()
    ask('a/u', 'right')
    ask('a/u', 'wrong')
    await eventually(() => results.length >= 2)
    expect(results).toEqual(['a/u right: right', 'a/u wrong: wrong'])
    ask('b/u', 'right')
    ask('b/u', 'wrong')
    expect(results.slice(2)).toEqual(['b/u right: right', 'b/u wrong: wrong'])
    expect(checks.counters()).toMatchObject({ passwordsComputed: 2, passwordsRemembered: 2 })
  })

  test('of another user or another hash are not taken for one that was checked', async () => {
    const { checks, results, ask } = openChecks()
    ask('a/u', 'right')
    await eventually(() => results.length >= 1)
    ask('a/v', 'right')
    const changed = parsePasswordHash(await hashPassword('changed', 12))!
    ask('a/u', 'right', { expected: changed })
    await eventually(() => results.length >= 3)
    expect(results.slice(1)).toEqual(['a/v right: right', 'a/u right: wrong'])
    expect(checks.counters().passwordsComputed).toBe(3)
  })

  test('are forgotten when users are read again, also one that is being checked', async () => {
    const { checks, results, ask } = openChecks()
    ask('a/u', 'right')
    checks.forget()
    await eventually(() => results.length >= 1)
    ask('a/u', 'right')
    await eventually(() => results.length >= 2)
    expect(checks.counters()).toMatchObject({ passwordsComputed: 2, passwordsRemembered: 0 })
  })

  test('of a fleet with one user need one computation', async () => {
    const { checks, results, ask } = openChecks()
    for (let index = 0; index < 50; index += 1) ask('a/u', 'right')
    await eventually(() => results.length >= 50)
    expect(checks.counters().passwordsComputed).toBe(1)
  })

  test('of one address do not delay those of another, nor of another user there', async () => {
    const { results, ask } = openChecks()
    for (let index = 0; index < 20; index += 1) ask('guesser/u', `guess ${index}`)
    ask('guesser/v', 'right')
    ask('other/u', 'right')
    await eventually(() => results.length >= 22)
    expect(results.slice(0, 3)).toContain('other/u right: right')
    expect(results.slice(0, 4)).toContain('guesser/v right: right')
  })

  test('of who was refused lately get every fourth turn', async () => {
    const { results, ask } = openChecks()
    for (let index = 0; index < 8; index += 1) ask(`s${index}/u`, `guess ${index}`, { suspect: true })
    for (let index = 0; index < 8; index += 1) ask(`d${index}/u`, `right ${index}`)
    await eventually(() => results.length >= 16)
    // The first one began before the others came.
    const early = results.slice(1, 9).filter((result) => result.startsWith('s'))
    expect(early.length).toBeGreaterThanOrEqual(1)
    expect(early.length).toBeLessThanOrEqual(2)
  })

  test('of a closed connection are not computed', async () => {
    const { checks, results, ask } = openChecks()
    ask('a/u', 'right')
    ask('a/u', 'gone', { isClosed: () => true })
    ask('a/u', 'wrong')
    await eventually(() => results.length >= 2)
    expect(results).toEqual(['a/u right: right', 'a/u wrong: wrong'])
    expect(checks.counters()).toMatchObject({ passwordsComputed: 2, passwordsWaiting: 0 })
  })

  test('beyond the bound are answered busy: the last of the address with most', async () => {
    const { checks, results, ask } = openChecks({ waitingMax: 4, rememberedMax: 100 })
    for (let index = 0; index < 5; index += 1) ask('guesser/u', `guess ${index}`)
    ask('other/u', 'right')
    expect(results).toEqual(['guesser/u guess 4: busy'])
    expect(checks.counters().passwordsWaiting).toBe(4)
    await eventually(() => results.length >= 6)
    expect(results).toContain('other/u right: right')
  })
})
