// Names of receivers are resolved two at a time, so that a dead name server leaves threads for the spool.

import type { LookupFunction } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createNameLookup } from '../../src/alerts/receivers/name-lookup.ts'
import { turn } from '../support/fake-clock.ts'

describe('the lookup of names', () => {
  test('runs at most two at a time, and fails what finds 64 waiting', async () => {
    const running: (() => void)[] = []
    const resolve: LookupFunction = (hostname, _options, callback) =>
      void running.push(() => callback(null, `address of ${hostname}`, 4))
    const lookup = createNameLookup(resolve)
    const found: string[] = []
    for (let one = 0; one < 70; one += 1)
      lookup(`host-${one}`, {}, (error, address) => found.push(error?.code ?? JSON.stringify(address)))
    await turn()
    expect(running).toHaveLength(2)
    expect(found).toEqual(['EAI_AGAIN', 'EAI_AGAIN', 'EAI_AGAIN', 'EAI_AGAIN'])
    running[0]?.()
    await turn()
    expect(running).toHaveLength(3)
    expect(found.at(-1)).toBe('"address of host-0"')
    for (let at = 1; at < running.length; at += 1) running[at]?.()
    expect(running).toHaveLength(66)
    expect(found).toHaveLength(70)
  })
})
