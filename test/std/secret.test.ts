import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'

test('two secrets are equal where their values are, also deep in a config, and what compares them shows no value', () => {
  const config = (value: string) => ({
    delivery: { proxy_auth: { user: 'gw', password: new Secret(value) } },
  })
  expect(isDeepStrictEqual(config('spring'), config('spring'))).toBe(true)
  expect(isDeepStrictEqual(config('spring'), config('summer'))).toBe(false)
  const { mark } = new Secret('spring')
  expect(mark).not.toContain('spring')
  expect(`${String(new Secret('spring'))} ${JSON.stringify(config('spring'))}`).not.toContain(mark)
})
