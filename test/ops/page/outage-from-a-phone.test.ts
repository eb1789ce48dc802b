// A technician with a login and no shell: what ends an outage can be done in the page, and is in the audit log.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startHttpReceiver } from '../../support/alert-world.ts'
import { configText, positionMap } from '../../support/config-text.ts'
import { newFolder } from '../../support/folders.ts'
import { expectSound, usersText, withViews } from '../../support/page-world.ts'
import { messageOf, startPipeline } from '../../support/pipeline-world.ts'

test('an outage is ended from the page: probe, reload and test alert, each in the audit log', async () => {
  const folder = await newFolder()
  const receiver = await startHttpReceiver()
  const users = await usersText(folder)
  const config = (topic: string) =>
    configText({
      sources: `[{ name: trucks, topic: '${topic}', map: ${positionMap} }]`,
      ops: `users: ${users}`,
      more: `alerts: { gateway: depot, receivers: [{ name: chat, type: webhook, url: "${receiver.url}/x", conditions: [LISTENER_FAILED] }] }`,
    })
  const pipeline = await startPipeline({
    folder,
    // Credentials are read again once; then there is one probe each ten minutes: nothing but a person ends this in the time of the test.
    sandbox: { faults: { count: 2, always: 401 } },
    config: config('telemetry/v1/{device}'),
  })
  const world = withViews(pipeline)
  await pipeline.publish('truck-1', messageOf(1))
  await pipeline.until(() => pipeline.codes().includes('ENDPOINT_UNAUTHORIZED'))
  const [alice, bob] = [await world.login('alice'), await world.login('bob')]
  const read = await world.view('/', bob)
  expectSound(read)
  expect(read.text).not.toContain('/page/change?')
  for (const command of ['probe', 'reload', 'alerts test'])
    expect(read.text).toContain(`<code>telemetry-gateway ${command}</code>`)

  /** Opens the view, follows the button, and confirms. */
  async function press(name: string) {
    const overview = await world.view('/', alice)
    expectSound(overview)
    const [, path = ''] = new RegExp(`href="(/page/change[^"]*)"\\s*>${name}…`).exec(overview.text) ?? []
    const question = await world.view(path.replaceAll('&amp;', '&'), alice)
    expectSound(question)
    const [, form = ''] =
      /<form method="post" action="\/page\/change">([\s\S]*?)<\/form>/.exec(question.text) ?? []
    const fields = [...form.matchAll(/name="(\w+)"\s+value="([^"]*)"/g)]
    const done = await world.send(
      '/page/change',
      Object.fromEntries(fields.map(([, field = '', value = '']) => [field, value])),
      alice,
    )
    expectSound(done)
    return done
  }

  const condition = /<article class="condition error"[^>]*>([\s\S]*?)<\/article>/.exec(
    (await world.view('/', alice)).text,
  )
  expect(condition?.[1]).toContain('Try the service now…')
  await press('Known for 3 days')
  expect(pipeline.condition('ENDPOINT_UNAUTHORIZED')?.known).not.toBeNull()
  await press('No longer known')
  expect(pipeline.condition('ENDPOINT_UNAUTHORIZED')?.known).toBeNull()
  const probed = await press('Try the service now')
  expect([probed.status, probed.text]).toEqual([200, expect.stringMatching(/<bdi>available/)])
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  expect(pipeline.codes()).not.toContain('ENDPOINT_UNAUTHORIZED')

  await writeFile(join(folder, 'gateway.yaml'), config('telemetry/#/{device}')(pipeline.baseUrl))
  const refused = await press('Reload the config')
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('topic')])
  await writeFile(join(folder, 'gateway.yaml'), config('telemetry/v2/{device}')(pipeline.baseUrl))
  const reloaded = await press('Reload the config')
  expect([reloaded.status, reloaded.text]).toEqual([
    200,
    expect.stringContaining('The mapping is in force: 1 source'),
  ])

  const tested = await press('Send a test alert')
  expect([tested.status, tested.text]).toEqual([200, expect.stringContaining('ok     chat')])
  expect(receiver.requests.length).toBe(1)

  const answer = await world.view('/audit', { ...bob, accept: 'application/json' })
  const { changes } = JSON.parse(answer.text) as {
    changes: { change: string; outcome: string; by: { user: string } }[]
  }
  expect(changes.map(({ change, outcome, by }) => `${by.user} ${change} ${outcome}`)).toEqual([
    'alice alerts/test done',
    'alice reload done',
    'alice reload refused',
    'alice probe done',
    'alice conditions/unacknowledge done',
    'alice conditions/acknowledge done',
    'bob login done',
    'alice login done',
  ])
})
