// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The start of the page.
import { App } from "./app";
import { startKey, startTheme } from "./dialogs";
import { startSidebar } from "./sidebar";

startTheme();
startKey();
startSidebar();
new App().start();
