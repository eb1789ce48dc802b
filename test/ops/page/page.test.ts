// Every view of the page, of a real gateway with something in each of them: complete without scripts, escaped,
// and with nothing from another host.

import { describe, expect, test } from 'vitest'
import { html, markupOf } from '../../../src/ops/page/html.ts'
import { pageRoutes } from '../../../src/ops/page/page.ts'
import { get, opsWorld } from '../../support/ops-world.ts'
import { newFolder } from '../../support/folders.ts'
import { expectSound, hostileNames, pageWorld, usersText, withViews } from '../../support/page-world.ts'
import { messageOf, startPipeline, topicOf } from '../../support/pipeline-world.ts'

describe('the template', () => {
  test('escapes text in content and in attributes', () => {
    expect(markupOf(html`<b title="${'"<&\'>'}">${'<i>'}</b>`)).toBe(
      '<b title="&quot;&lt;&amp;&#39;&gt;">&lt;i&gt;</b>',
    )
  })

  test('keeps what it made, joins lists and leaves out what is absent', () => {
    const items = ['a', 'b'].map((name) => html`<i>${name}</i>`)
    expect(markupOf(html`${items}${null}${undefined}${false}${0}`)).toBe('<i>a</i><i>b</i>0')
  })

  test('writes characters that hide or reorder text, and keeps lines', () => {
    expect(markupOf(html`${'a\u202eb\u0000c\ud800\n\td'}`)).toBe('a\\u{202e}b\\u{0}c\\u{d800}\n\td')
  })
})

const paths = [
  '/',
  '/page/devices',
  '/page/devices?find=truck',
  '/?span=day',
  '/page/device?key=truck-1',
  '/page/device?key=new-truck',
  '/page/device?key=truck-2',
  ...hostileNames.map((name) => `/page/device?key=${encodeURIComponent(name.replaceAll('/', '-'))}`),
  '/page/map',
  '/page/refused',
  '/page/dead-letters',
  '/page/dead-letters?reason=NOT_JSON&device=',
  '/page/quarantine',
  '/page/batches',
  '/page/ledger',
  '/page/ledger?device=TR-001&at=&outcome=delivered',
  `/page/ledger?at=${encodeURIComponent('<script>')}`,
  '/page/live?device=%3Cscript%3E',
  '/page/changes',
  '/login',
]

describe('the views of a gateway with something in every one of them', () => {
  test('are sound documents for everybody, and show commands in the place of changes', async () => {
    const world = await pageWorld()
    for (const path of paths) {
      const view = await world.view(path)
      // The long name is no device: it became a dead letter.
      const status = path.includes('long-') ? 404 : 200
      expect([path, view.status]).toEqual([path, status])
      expectSound(view)
      expect(view.text).not.toContain('method="post" action="/page')
    }
    const overview = await world.view('/')
    expect(overview.text).toContain('Degraded')
    expect(overview.text).toContain('<code>BATCHES_HELD</code>')
    expect(overview.text).toMatch(/<dt>Payloads<\/dt>\s*<dd>2<\/dd>/)

    const { text: device } = await world.view('/page/device?key=new-truck')
    expect(device).toContain('telemetry-gateway devices accept new-truck --asset new-truck')
    expect(device).toContain('device,asset_id\nnew-truck,new-truck')
    const { text: hostile } = await world.view(
      `/page/device?key=${encodeURIComponent(hostileNames[2] ?? '')}`,
    )
    expect(hostile).toContain('devices accept &#39;&#39;\\&#39;&#39; onmouseover=')
    const { text: found } = await world.view('/page/devices?find=tr-001')
    expect([found.includes('truck-1'), found.includes('new-truck')]).toEqual([true, false])

    for (const path of [
      '/page/dead-letter?id=x',
      '/page/change?change=reload',
      '/page/devices?from=x',
      '/page/x',
    ]) {
      const refused = await world.view(path)
      expect([path, refused.status >= 400]).toEqual([path, true])
      expectSound(refused)
      expect(refused.text).toContain('What to do:')
    }
  })

  test('let a user with the right change what they show, after a question, and nobody else', async () => {
    const world = await pageWorld({ hasUsers: true })
    expect((await world.view('/page/dead-letters')).headers.get('location')).toBe(
      '/login?to=%2Fpage%2Fdead-letters',
    )
    const [alice, bob] = [await world.login('alice'), await world.login('bob')]
    const list = await world.view('/page/dead-letters', alice)
    expectSound(list)
    // On a phone a list is twenty screens long.
    expect(list.text.indexOf('>Requeue…<')).toBeGreaterThan(0)
    expect(list.text.indexOf('>Requeue…<')).toBeLessThan(list.text.indexOf('<table'))
    const id = /dead-letter\?id=([^"]+)"/.exec(list.text)?.[1] ?? ''
    const whole = await world.view(`/page/dead-letter?id=${id}`, bob)
    expectSound(whole)
    expect(whole.text).toContain('not JSON')
    expect(whole.text).toContain(`telemetry-gateway dead-letters requeue ${decodeURIComponent(id)}`)
    expect((await world.view(`/page/change?change=dead-letters/purge&id=${id}`, bob)).status).toBe(403)

    const asked = await world.view(`/page/change?change=dead-letters/purge&id=${id}`, alice)
    expectSound(asked)
    expect(asked.text).toContain('1 dead letter would be deleted.')
    // Who does not go through with it is where he was.
    const cancelOf = (text: string) => /href="([^"]*)">Cancel/.exec(text)?.[1]
    expect(cancelOf(asked.text)).toBe(`/page/dead-letter?id=${id}`)
    for (const [query, from] of [
      ['change=dead-letters/purge&reason=NOT_JSON', '/page/dead-letters?reason=NOT_JSON'],
      ['change=dead-letters/purge&all=1', '/page/dead-letters'],
      ['change=devices/mute&device=truck-1&for=7d', '/page/device?key=truck-1'],
      ['change=probe', '/'],
    ])
      expect(cancelOf((await world.view(`/page/change?${query}`, alice)).text)).toBe(from)
    expect(world.status().spool.deadLetters).toBe(3)
    const fields = Object.fromEntries(
      [...asked.text.matchAll(/name="(\w+)"\s+value="([^"]*)"/g)]
        .slice(-5)
        .map(([, name = '', value = '']) => [name, value]),
    )
    expect(fields).toMatchObject({ change: 'dead-letters/purge', yes: '1' })
    const withoutToken = await world.send('/page/change', { ...fields, token: '' }, alice)
    expect([withoutToken.status, world.status().spool.deadLetters]).toEqual([403, 3])
    const done = await world.send('/page/change', fields, alice)
    expectSound(done)
    expect([done.status, world.status().spool.deadLetters]).toEqual([200, 2])
    const { text: changes } = await world.view('/page/changes', bob)
    expect(changes).toMatch(/dead-letters\/purge[\s\S]*alice/)

    const batch = /batch\?id=([^"]+)"/.exec((await world.view('/page/batches', alice)).text)?.[1] ?? ''
    const held = await world.view(`/page/batch?id=${batch}`, alice)
    expectSound(held)
    expect(held.text).toContain('Mark delivered…')
    expectSound(await world.view(`/page/change?change=batches/mark-delivered&id=${batch}`, alice))
  })
})

describe('a dead letter with a payload', () => {
  test('is edited and sent again in a view', async () => {
    const folder = await newFolder()
    const pipeline = await startPipeline({
      folder,
      sandbox: {
        faults: { count: 1, fail: [{ message: 'The odometer is too low.', field: 'signals[0].value' }] },
      },
      sections: {
        delivery: 'batch: { linger: 20ms }, errors: { Validation: [] }',
        ops: `{ listen: "127.0.0.1:0", users: ${await usersText(folder)} }`,
      },
    })
    const world = withViews(pipeline)
    const device = await pipeline.device('truck-1')
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    await pipeline.until(() => pipeline.status().spool.deadLetters === 1)
    const alice = await world.login('alice')
    const id =
      /dead-letter\?id=([^"]+)"/.exec((await world.view('/page/dead-letters', alice)).text)?.[1] ?? ''
    const whole = await world.view(`/page/dead-letter?id=${id}`, alice)
    expectSound(whole)
    expect(whole.text).toContain('The odometer is too low.')
    const token = /name="token"\s+value="([^"]+)"/.exec(whole.text)?.[1] ?? ''
    const body = (/<textarea[^>]*>([\s\S]*?)<\/textarea/.exec(whole.text)?.[1] ?? '').replaceAll(
      '&quot;',
      '"',
    )
    expect(body).toContain('"value": "1000.125"')

    const edit = { token, change: 'dead-letters/edit', id, sure: '1' }
    const refused = await world.send('/page/change', { ...edit, body: 'no payload' }, alice)
    expectSound(refused)
    expect([refused.status, pipeline.status().spool.deadLetters]).toEqual([422, 1])
    expect(refused.text).toContain('DEAD_LETTER_INVALID')
    const done = await world.send('/page/change', { ...edit, body: body.replace('1000.125', '2000') }, alice)
    expectSound(done)
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    expect(pipeline.status().spool.deadLetters).toBe(0)
    for (const path of ['/', '/page/changes', '/page/ledger'])
      expect((await world.view(path, alice)).text).not.toMatch(/\$scrypt|correct horse/)
  })
})

describe('the files', () => {
  test('come from the package, and may be kept by a browser', async () => {
    await using world = opsWorld()
    await world.ops.start()
    for (const { path } of pageRoutes.filter((route) => route.path.startsWith('/page/assets/'))) {
      const { status, headers, text } = await get(world.ops.url(), path)
      expect([path, status]).toEqual([path, 200])
      expect(headers.get('cache-control')).toBe('public, max-age=86400')
      expect(text.length).toBeGreaterThan(100)
      expect(text).not.toMatch(/https?:\/\/(?!www\.w3\.org\/)[\w.]+\/[^\s]*\.(js|css|woff2?)/)
    }
  })
})
