import { expect, test } from 'vitest'
import { createEngineQueues } from '../../../src/ingest/custody/engine-queues.ts'
import type { MessageSource } from '../../../src/ingest/message-sources/message-sources.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

test('each bridge is failing until it confirms entries itself, whichever has them meanwhile', async () => {
  const refusing = new Set(['depot'])
  const sources = ['depot', 'yard'].map((name) => ({
    name,
    custody: {
      store: () => (refusing.has(name) ? Promise.reject(new Error('The queue is full')) : Promise.resolve()),
    },
  })) as unknown as MessageSource[]
  const queues = createEngineQueues({ clock: createFakeClock(), sources: () => sources })
  const store = () => queues.store('parked', [], new AbortController().signal)
  const failing = () => queues.states().map((state) => 'messageSource' in state && state.messageSource)

  await store()
  expect(failing()).toEqual(['depot'])
  expect(queues.mayStore()).toBe(true)
  refusing.add('yard')
  await expect(store()).rejects.toThrow('The queue is full')
  expect(failing()).toEqual(['depot', 'yard'])
  expect(queues.mayStore()).toBe(false)
  refusing.delete('depot')
  await store()
  expect(failing()).toEqual(['yard'])
})
