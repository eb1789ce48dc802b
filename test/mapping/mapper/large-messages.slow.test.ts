import { expect, test } from 'vitest'
import { messageOf, openMapperOf, truckSource, verdictOf } from '../../support/mapping-world.ts'

const good = '{"ts":1769611000000,"lat":48.8566,"lon":2.3522}'
const map = (bytes: string | Buffer, max_records?: number) =>
  openMapperOf([{ ...truckSource(), ...(max_records && { max_records }) }]).map(
    messageOf(typeof bytes === 'string' ? Buffer.from(bytes) : bytes),
  )

test('ten megabytes are refused', () => {
  expect(verdictOf(map(Buffer.alloc(10 * 1024 * 1024)))).toBe('TOO_LARGE')
})

test('ten megabytes are mapped or refused in the same way as one kilobyte, where max_records allows it', () => {
  const size = 10 * 1024 * 1024
  expect(verdictOf(map(good.replace('}', `,"pad":"${'x'.repeat(size)}"}`), 10_000))).toBe('payloads')
  expect(verdictOf(map('x'.repeat(size), 10_000))).toBe('NOT_JSON')
  expect(verdictOf(map(Buffer.alloc(size), 10_000))).toBe('empty')
  expect(verdictOf(map(Buffer.alloc(size, 0xff), 10_000))).toBe('NOT_UTF8')
  expect(verdictOf(map(`[${'[],'.repeat(size / 3)}[]]`, 10_000))).toBe('TOO_MANY')
  expect(verdictOf(map(`{"ts":1,"lon":2,"lat":"${'9'.repeat(size)}"}`, 10_000))).toBe('BAD_VALUE')
})
