import { expect, test } from 'vitest'
import { messageOf, openMapperOf, truckSource, verdictOf } from '../../support/mapping-world.ts'

const good = '{"ts":1769611000000,"lat":48.8566,"lon":2.3522}'
const map = (bytes: string | Buffer) =>
  openMapperOf([truckSource()]).map(messageOf(typeof bytes === 'string' ? Buffer.from(bytes) : bytes))

test('ten megabytes are mapped or refused in the same way as one kilobyte', () => {
  const size = 10 * 1024 * 1024
  expect(verdictOf(map(good.replace('}', `,"pad":"${'x'.repeat(size)}"}`)))).toBe('payloads')
  expect(verdictOf(map('x'.repeat(size)))).toBe('NOT_JSON')
  expect(verdictOf(map(Buffer.alloc(size)))).toBe('empty')
  expect(verdictOf(map(Buffer.alloc(size, 0xff)))).toBe('NOT_UTF8')
  expect(verdictOf(map(`[${'[],'.repeat(size / 3)}[]]`))).toBe('NOT_AN_OBJECT')
  expect(verdictOf(map(`{"ts":1,"lon":2,"lat":"${'9'.repeat(size)}"}`))).toBe('BAD_VALUE')
})
