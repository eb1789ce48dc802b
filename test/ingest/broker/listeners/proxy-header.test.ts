import { expect, test } from 'vitest'
import {
  clientAddressIn,
  clientAddressOf,
  proxyHeadOf,
} from '../../../../src/ingest/broker/listeners/proxy-header.ts'
import { rowsBeside } from '../../../support/case-rows.ts'
import { proxyHeader } from '../../../support/proxy-header-bytes.ts'

type Header = string | { of: string; more?: number; from_12?: string }

const rows = rowsBeside(import.meta.filename) as {
  headers: [what: string, header: Header, result: string | null][]
  lines: [line: string, result: string | null][]
}

/** A text as it is; else the header of an address with so many bytes more, and others from byte 12 on. */
function bytesOf(header: Header): Buffer {
  if (typeof header === 'string') return Buffer.from(header, 'latin1')
  const bytes = proxyHeader(header.of, Buffer.alloc(header.more ?? 0, 4))
  bytes.set(Buffer.from(header.from_12 ?? '', 'hex'), 12)
  return bytes
}

test.each(rows.headers)('a PROXY protocol header with %s', (_what, header, result) => {
  const bytes = bytesOf(header)
  const head = proxyHeadOf(bytes.subarray(0, 16))
  const found =
    typeof head === 'string' ? head : clientAddressOf(head, bytes.subarray(16, 16 + head.restBytes))
  expect(found).toBe(result)
})

test.each(rows.lines)('a line of version 1 %s: %s', (line, result) => {
  expect(clientAddressIn(line)).toEqual(result === 'invalid' ? result : { address: result })
})
