// A newcomer is accepted by a user of the page: the row, the audit entry, and what is refused.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { configText } from '../../support/config-text.ts'
import { newFolder } from '../../support/folders.ts'
import { expectSound, usersText, withViews } from '../../support/page-world.ts'
import { messageOf, startPipeline } from '../../support/pipeline-world.ts'

/** A gateway with a newcomer in its quarantine. */
async function world(table = 'devices.csv') {
  const folder = await newFolder()
  await writeFile(join(folder, table), 'device,asset_id\ntruck-1,TR-001\n')
  const users = await usersText(folder)
  const pipeline = await startPipeline({
    folder,
    config: configText({
      ops: `users: ${users}`,
      delivery: 'batch: { linger: 20ms }, providers: [{ name: acme, provider_key: acme-key }]',
      more: `devices: { file: ${table}, unknown: quarantine }`,
    }),
  })
  await pipeline.publish('new-truck', messageOf(1))
  const views = withViews(pipeline)
  const alice = await views.login('alice')
  const accept = async (fields: Record<string, string>) => {
    const question = await views.view(
      `/page/change?${new URLSearchParams({ change: 'devices/accept', ...fields }).toString()}`,
      alice,
    )
    expectSound(question)
    const token = /name="token"\s+value="([^"]+)"/.exec(question.text)?.[1] ?? ''
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
    const done = await views.send('/page/change', { token, change: 'devices/accept', ...given }, alice)
    expectSound(done)
    return done
  }
  return { ...views, alice, accept, rows: () => readFile(join(folder, table), 'utf8') }
}

test('with the asset and the provider that a person types; its messages are delivered', async () => {
  const { view, alice, accept, rows, login, ...pipeline } = await world()
  const device = await view('/page/device?key=new-truck', alice)
  expectSound(device)
  expect(device.text).toContain('name="change" value="devices/accept"')
  const bob = await view('/page/device?key=new-truck', await login('bob'))
  expect(bob.text).not.toContain('action="/page/change"')

  const wrong = await accept({ device: 'new-truck', asset: 'TR-009', provider: 'nobody' })
  expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining('DEVICES_INVALID')])
  expect(await rows()).toBe('device,asset_id\ntruck-1,TR-001\n')
  const unknown = await accept({ device: 'other-truck', asset: '', provider: '' })
  expect([unknown.status, unknown.text]).toEqual([404, expect.stringContaining('can be accepted')])

  const done = await accept({ device: 'new-truck', asset: 'TR-009', provider: 'acme' })
  expect([done.status, done.text]).toEqual([200, expect.stringContaining('in force')])
  expect(await rows()).toBe('device,asset_id,provider\ntruck-1,TR-001,\nnew-truck,TR-009,acme\n')
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  const again = await accept({ device: 'new-truck', asset: 'TR-010', provider: '' })
  expect([again.status, again.text]).toEqual([422, expect.stringContaining('DEVICE_LISTED')])

  const { stdout } = await runCli(['audit', '--json', '--url', pipeline.gateway.addresses.control])
  const { changes } = JSON.parse(stdout) as {
    changes: { change: string; outcome: string; by: { user: string }; request: string }[]
  }
  const accepted = changes.filter(({ change }) => change === 'devices/accept')
  expect(accepted.map(({ outcome, by }) => `${by.user} ${outcome}`)).toEqual([
    'alice refused',
    'alice done',
    'alice refused',
    'alice refused',
  ])
  expect(accepted[1]?.request).toBe('device=new-truck&asset=TR-009&provider=acme')
})

test('is refused where the gateway cannot write the table, and says who can', async () => {
  // No file beside it can have a name that is longer: the rights of a test do not stop root.
  const table = `${'d'.repeat(249)}.csv`
  const { accept, rows, ...pipeline } = await world(table)
  const refused = await accept({ device: 'new-truck', asset: 'TR-009', provider: '' })
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('OUTPUT_UNWRITABLE')])
  expect(refused.text).toContain('Cannot change the device table')
  expect(await rows()).toBe('device,asset_id\ntruck-1,TR-001\n')
  expect(pipeline.status().totals).toMatchObject({ quarantined: 1, payloads: 0 })
})

test('a command without --config lets the gateway change the table', async () => {
  const { rows, ...pipeline } = await world()
  const url = pipeline.gateway.addresses.control
  const done = await runCli(['devices', 'accept', 'new-truck', '--asset', 'TR-009', '--url', url])
  expect([done.status, done.stdout]).toEqual([0, expect.stringMatching(/in force\.\nIts messages leave/)])
  expect(await rows()).toContain('new-truck,TR-009\n')
})

test('also where only its messages in quarantine are known, as after a kill', async () => {
  const { rows, ...pipeline } = await world()
  const at = ['--url', pipeline.gateway.addresses.control]
  expect(await runCli(['devices', 'forget', 'new-truck', ...at])).toMatchObject({ status: 0 })
  const done = await runCli(['devices', 'accept', 'new-truck', '--asset', 'TR-009', ...at])
  expect([done.status, done.stdout]).toEqual([0, expect.stringMatching(/in force\.\nIts messages leave/)])
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  expect(await rows()).toContain('new-truck,TR-009\n')
})
