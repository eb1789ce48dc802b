// As stories.test.ts, with thousands of batches or dead letters.

import { deliveryWords, startDelivery } from '../../support/delivery-steps.ts'
import { stepCases } from '../../support/step-cases.ts'

stepCases(import.meta.filename, startDelivery, deliveryWords, [
  'many-held-batches.cases.yaml',
  'remembered-answers.cases.yaml',
])
