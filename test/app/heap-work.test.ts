import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkInThread, openLevelStore, type OpenStore } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

test('the work on the heap ends with the stages that began it, also where the spool was lost', async () => {
  const folder = await newFolder()
  let begun = 0
  let running = 0
  const startHeapWork = () => {
    begun += 1
    running += 1
    return { stop: () => void (running -= 1) }
  }
  let fails = false
  const openStore: OpenStore = async (place, options) => {
    const store = await openLevelStore(place, options)
    if (!place.endsWith('store')) return store
    return {
      ...store,
      write(ops, how) {
        if (!fails) return store.write(ops, how)
        fails = false
        return Promise.reject(Object.assign(new Error('input/output error'), { code: 'EIO' }))
      },
    }
  }
  const deps = { openStore, checkStore: checkInThread, startHeapWork }
  const pipeline = await startPipeline({ folder, baseUrl: 'http://127.0.0.1:1', deps })
  const device = await pipeline.device('truck-1')
  const current = join(folder, 'spool', 'store', 'CURRENT')
  await rename(current, `${current}.away`)
  fails = true
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
  await pipeline.until(() => pipeline.gateway.addresses.mqtt.length === 0)
  await rename(`${current}.away`, current)
  await pipeline.until(() => pipeline.status().ready)
  expect({ begun, running }).toEqual({ begun: 2, running: 1 })
  await pipeline.gateway.stop('SIGTERM')
  expect(running).toBe(0)
})
