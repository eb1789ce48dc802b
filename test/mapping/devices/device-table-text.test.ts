import { describe, expect, test } from 'vitest'
import { parseDevices } from '../../../src/mapping/devices/device-table.ts'
import { editDevices, type DeviceFields } from '../../../src/mapping/devices/device-table-text.ts'

function edited(text: string, rows: readonly DeviceFields[], onConflict: 'replace' | 'report' = 'report') {
  const result = editDevices(text, rows, { onConflict })
  if (result.kind === 'invalid') throw new Error(`${result.line} ${result.message}`)
  return result
}

describe('the text of a device table', () => {
  test.each([
    ['an empty file', '', 'device,asset_id\ntruck-9,TRK-9\n'],
    ['a header alone', 'device,asset_id\n', 'device,asset_id\ntruck-9,TRK-9\n'],
    ['a file without a last line end', 'device,asset_id\na,A', 'device,asset_id\na,A\ntruck-9,TRK-9\n'],
    [
      'lines that end with CR LF',
      'device,asset_id\r\na,A\r\n',
      'device,asset_id\r\na,A\r\ntruck-9,TRK-9\r\n',
    ],
    ['columns in another order', 'asset_id,device\nA,a\n', 'asset_id,device\nA,a\nTRK-9,truck-9\n'],
    [
      'comments, empty lines and quotes',
      '# depot\ndevice,asset_id\n\n"a","A, the first"\n# end\n',
      '# depot\ndevice,asset_id\n\n"a","A, the first"\n# end\ntruck-9,TRK-9\n',
    ],
    ['a comment behind blanks', 'device\na\n  # b\n', 'device,asset_id\na,\n  # b\ntruck-9,TRK-9\n'],
    ['a missing column', '# x\ndevice\na\n\n"b"\n', '# x\ndevice,asset_id\na,\n\n"b",\ntruck-9,TRK-9\n'],
    ['a mark of the byte order', '\ufeffdevice,asset_id\n', '\ufeffdevice,asset_id\ntruck-9,TRK-9\n'],
  ])('gets a row, and stays as it was: %s', (_what, before, after) => {
    const { text, added } = edited(before, [{ device: 'truck-9', asset_id: 'TRK-9' }])
    expect([text, added]).toEqual([after, 1])
    expect(parseDevices(Buffer.from(text)).problems).toEqual([])
    expect(parseDevices(Buffer.from(text)).table.find('truck-9')).toEqual({ asset_id: 'TRK-9' })
  })

  test.each(['a,b', 'say "x"', '#7', 'two\nlines', ' blank'])(
    'quotes %j so that it is read as it is',
    (name) => {
      const { text } = edited('device,asset_id\na,A\n', [{ device: 'truck-9', asset_id: name }])
      expect(parseDevices(Buffer.from(text)).table.find('truck-9')).toEqual({ asset_id: name })
      expect(parseDevices(Buffer.from(text)).table.find('a')).toEqual({ asset_id: 'A' })
    },
  )

  test('keeps a row with other fields unless it is replaced, and counts equal ones', () => {
    const before = 'device,asset_id,model\na,A,"x\ny"\nb,B,\nc,C,\n'
    const rows = [
      { device: 'a', asset_id: 'A2' },
      { device: 'b', asset_id: 'B' },
    ]
    expect(edited(before, rows)).toMatchObject({ text: before, conflicts: ['a'], same: 1, added: 0 })
    expect(edited(before, rows, 'replace')).toMatchObject({
      text: 'device,asset_id,model\na,A2,\nb,B,\nc,C,\n',
      conflicts: [],
      replaced: 1,
      same: 1,
    })
  })

  test('is left as it is where it has a problem', () => {
    expect(editDevices('device,asset_id\n"a,A\n', [{ device: 'b' }], { onConflict: 'report' })).toMatchObject(
      {
        kind: 'invalid',
        line: 2,
      },
    )
    expect(editDevices('name\na\n', [{ device: 'b' }], { onConflict: 'report' }).kind).toBe('invalid')
  })
})
