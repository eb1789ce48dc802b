import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { checkInThread, openLevelStore, type OpenStore } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

const running = vi.hoisted(() => ({ count: 0, most: 0 }))

vi.mock('../../src/app/heap-work.ts', async (original) => {
  const { startHeapWork } = await original<typeof import('../../src/app/heap-work.ts')>()
  return {
    startHeapWork(...deps: Parameters<typeof startHeapWork>): ReturnType<typeof startHeapWork> {
      const work = startHeapWork(...deps)
      running.count += 1
      running.most = Math.max(running.most, running.count)
      return {
        stop() {
          running.count -= 1
          work.stop()
        },
      }
    },
  }
})

test('the work on the heap ends with the stages that began it, also where the spool was lost', async () => {
  const folder = await newFolder()
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
  const deps = { openStore, checkStore: checkInThread }
  const pipeline = await startPipeline({ folder, baseUrl: 'http://127.0.0.1:1', deps })
  const device = await pipeline.device('truck-1')
  const current = join(folder, 'spool', 'store', 'CURRENT')
  await rename(current, `${current}.away`)
  fails = true
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
  await pipeline.until(() => pipeline.gateway.addresses.mqtt.length === 0)
  await rename(`${current}.away`, current)
  await pipeline.until(() => pipeline.status().ready)
  expect(running).toEqual({ count: 1, most: 1 })
  await pipeline.gateway.stop('SIGTERM')
  expect(running.count).toBe(0)
})
