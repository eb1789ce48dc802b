// Views of all devices: made once for the browsers that ask at the same time, and new again soon.

import { expect, test } from 'vitest'
import { deviceView, mappingStage } from '../../support/mapping-stage.ts'
import { get, opsWorld, stages } from '../../support/ops-world.ts'

async function world() {
  const ops = opsWorld()
  const walks = { count: 0, fails: false }
  const stage = mappingStage({}, [deviceView('truck-1'), deviceView('truck-2')])
  ops.ops.attach({
    ...stages({}),
    mapping: {
      ...stage,
      devices() {
        walks.count += 1
        if (walks.fails) throw new Error('it is closed')
        return stage.devices()
      },
    },
  })
  await ops.ops.start()
  const view = (path: string) => get(ops.ops.url(), path, { headers: { accept: 'text/html' } })
  return Object.assign(ops, { walks, view })
}

test.each(['/page/devices', '/page/map', '/page/refused'])('%s walks once for ten browsers', async (path) => {
  await using ops = await world()
  const views = await Promise.all(Array.from({ length: 10 }, () => ops.view(path)))
  expect(new Set(views.map(({ status }) => status))).toEqual(new Set([200]))
  expect(ops.walks.count).toBe(1)
  ops.clock.move(2000)
  await ops.view(path)
  expect(ops.walks.count).toBe(2)
})

test('another search is another view, and what failed is tried again', async () => {
  await using ops = await world()
  expect((await ops.view('/page/devices?find=truck-1')).text).not.toContain('truck-2')
  expect((await ops.view('/page/devices?find=truck-2')).text).toContain('truck-2')
  expect(ops.walks.count).toBe(2)
  ops.walks.fails = true
  expect((await ops.view('/page/devices')).status).toBe(500)
  ops.walks.fails = false
  expect((await ops.view('/page/devices')).status).toBe(200)
})
