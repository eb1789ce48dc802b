// What delivery does over time, as a provider of payloads, an operator and the engine see it. The words are those of
// test/support/delivery-steps.ts.

import { deliveryWords, startDelivery } from '../../support/delivery-steps.ts'
import { stepCases } from '../../support/step-cases.ts'

const files = ['batches', 'outages', 'standstill', 'forbidden', 'refusals', 'operator-acts', 'returns']

stepCases(
  import.meta.filename,
  startDelivery,
  deliveryWords,
  files.map((name) => `${name}.cases.yaml`),
)
