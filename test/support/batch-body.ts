// batch-body.ts: the request body of a batch, as it would be sent.

import type { BatchContent } from '../../src/spool/spool.ts'

export function bodyOf(content: BatchContent): Buffer {
  const body = Buffer.alloc(content.bodyBytes)
  content.writeBody(body)
  return body
}
