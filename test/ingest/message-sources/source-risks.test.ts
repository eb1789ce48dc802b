import { expect, test } from 'vitest'
import { SourceRisks, type RiskFinding } from '../../../src/ingest/message-sources/source-risks.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const clock = createFakeClock()
const finding = (detail: string): RiskFinding => ({ clientId: 'gw-1', detail })
const statesOf = (risks: SourceRisks) => [...risks.states()]

test('a risk is one state while it is found of anything, with the first finding in words', () => {
  const risks = new SourceRisks({ clock }, 'depot')
  risks.set('qos_0_granted', 'gw-1', finding('The first.'))
  risks.set('qos_0_granted', 'gw-2', finding('The second.'))
  risks.set('session_lost', 'gw-3', null)
  const state = { code: 'MESSAGE_SOURCE_AT_RISK', messageSource: 'depot', risk: 'qos_0_granted' }
  expect(statesOf(risks)).toEqual([
    { ...state, about: ['gw-1', 'gw-2'], clientId: 'gw-1', detail: 'The first.', act: null },
  ])
  risks.set('qos_0_granted', 'gw-1', null)
  expect(statesOf(risks)).toMatchObject([{ ...state, about: ['gw-2'], detail: 'The second.' }])
  risks.set('qos_0_granted', 'gw-2', null)
  expect(statesOf(risks)).toEqual([])
})

test('what is found no more of a whole look is over', () => {
  const risks = new SourceRisks({ clock }, 'depot')
  const found = (...names: string[]) => new Map(names.map((name) => [name, finding(name)]))
  risks.setAll('queue_missing', found('a', 'b'))
  risks.setAll('queue_missing', found('b', 'c'))
  expect(statesOf(risks)).toMatchObject([{ about: ['b', 'c'] }])
  risks.setAll('queue_missing', found())
  expect(statesOf(risks)).toEqual([])
})

test('what happened once is over a day after the last time', async () => {
  const risks = new SourceRisks({ clock }, 'depot')
  const hourMs = 3_600_000
  risks.happened('oversized', 'gw-1', finding('A message.'))
  await clock.advance(20 * hourMs)
  risks.happened('oversized', 'gw-1', finding('Another message.'))
  await clock.advance(23 * hourMs)
  expect(statesOf(risks)).toMatchObject([{ risk: 'oversized', detail: 'Another message.' }])
  await clock.advance(hourMs)
  expect(statesOf(risks)).toEqual([])
})
