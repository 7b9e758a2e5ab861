# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Every architecture in plain Python and double precision, written from its description and not from
models/."""
